"""Golden files under the real parsers of Debian 13: Compose v2's `config` and Quadlet's generator."""

import json
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest

from selfhost.plan.workload import workload_of
from selfhost.render.head import Head
from selfhost.render.targets import files_of
from selfhost.shapes.workload import Mount, Workload
from selfhost.visibility.files import NO_FILES
from selfhost.visibility.readers import service
from tests.e2e.debian13 import unpacked
from tests.fakes.workloads import ODD
from tests.render.golden_cases import GOLDEN, PLACE, Case, place_of, plan_of, rendered

pytestmark = [pytest.mark.e2e, pytest.mark.slow]
GIB = 1024**3


@pytest.fixture(scope="session")
def tools() -> Path:
    return unpacked()


def of(*targets: str) -> list[Case]:
    return [case for case in rendered() if case.target in targets]


def config(tools: Path, case: Case, folder: Path) -> dict[str, Any]:
    """As Compose understands the file; its env_file is put where the test may."""
    (folder / "engine.env").write_text("VLLM_API_KEY=x\n", encoding="utf-8")
    text = (GOLDEN / str(case) / "compose.yaml").read_text(encoding="utf-8")
    (folder / "compose.yaml").write_text(text.replace(PLACE.env_file, str(folder / "engine.env")), encoding="utf-8")
    argv = [tools / "usr/bin/docker-compose", "-f", folder / "compose.yaml", "config", "--format", "json"]
    done = subprocess.run(argv, capture_output=True, text=True, timeout=60, check=False)
    assert (done.returncode, done.stderr) == (0, ""), done.stderr
    said: dict[str, Any] = json.loads(done.stdout)
    return said


@pytest.mark.parametrize("case", of("compose"), ids=str)
def test_compose_understands_what_was_planned(case: Case, tools: Path, tmp_path: Path) -> None:
    said = config(tools, case, tmp_path)
    plan = plan_of(case)
    planned = workload_of(plan, place_of(plan))
    found = said["services"]["it"]
    assert [word.replace("$$", "$") for word in found["command"]] == list(planned.argv)
    assert found["image"] == planned.image
    assert {name: found["environment"][name].replace("$$", "$") for name in planned.env} == planned.env
    assert int(found["shm_size"]) == planned.shm_bytes
    assert found["healthcheck"]["test"] == ["CMD", *(planned.health.test if planned.health else ())]
    assert found["restart"] == planned.restart
    assert found.get("privileged") is None
    assert said["networks"]["default"]["name"] == planned.network
    reserved = found.get("deploy", {}).get("resources", {}).get("reservations", {}).get("devices", [])
    ids = {name for request in reserved for name in request.get("device_ids", [])}
    assert ids == {f"{one.kind}={one.name}" for one in planned.cdi} | {i for one in planned.requests for i in one.ids}
    assert [port["host_ip"] for port in found["ports"]] == ["127.0.0.1"]


@pytest.mark.parametrize("case", of("quadlet"), ids=str)
def test_quadlet_makes_the_planned_service(case: Case, tools: Path, tmp_path: Path) -> None:
    for path in (GOLDEN / str(case)).iterdir():
        shutil.copy(path, tmp_path)
    done = subprocess.run(
        [tools / "usr/libexec/podman/quadlet", "--dryrun", "--user"],
        capture_output=True, text=True, timeout=60, check=False, env={"QUADLET_UNIT_DIRS": str(tmp_path)},
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    complaints = [line for line in done.stderr.splitlines() if "Loading source unit file" not in line]
    assert complaints == []
    units = dict(part.split("---\n", 1) for part in done.stdout.split("\n---") if "---\n" in part)
    text = next(text for name, text in units.items() if name.lstrip("-") == "selfhost-it.service")
    made = service.read(text, path="selfhost-it.service", files=NO_FILES)[0]
    plan = plan_of(case)
    planned = workload_of(plan, place_of(plan))
    assert made.argv == planned.argv
    assert made.env == {**planned.env}
    assert made.image == planned.image
    assert made.health == planned.health
    assert {one.name for one in made.cdi} == {one.name for one in planned.cdi}
    assert {mount.target for mount in made.mounts} == {mount.target for mount in planned.mounts}
    assert made.network == planned.network
    assert made.restart == ""


HEAD = Head(title="it", digest="0" * 64)


def an_odd(words: list[str]) -> Workload:
    env = {f"T_{number}": word for number, word in enumerate(words)}
    labels = {f"l.x{number}": word for number, word in enumerate(words)}
    mount = Mount(source="/srv/my models/it's $x %h", target="/model", read_only=True)
    return Workload(
        name="selfhost-it", image="docker.io/x/y:z", argv=tuple(words), env=env, labels=labels, mounts=(mount,)
    )


def test_compose_hands_over_odd_words_as_they_are(tools: Path, tmp_path: Path) -> None:
    planned = an_odd(ODD)
    files, _ = files_of("compose", planned, HEAD, {"argv.yes": "a # b: c", "env": "\x85 'x"})
    (tmp_path / "compose.yaml").write_bytes(files["compose.yaml"].encode())
    argv = [tools / "usr/bin/docker-compose", "-f", tmp_path / "compose.yaml", "config", "--format", "json"]
    done = subprocess.run(argv, capture_output=True, text=True, timeout=60, check=False)
    assert (done.returncode, done.stderr) == (0, "")
    found = json.loads(done.stdout)["services"]["it"]
    assert [word.replace("$$", "$") for word in found["command"]] == ODD
    assert {name: value.replace("$$", "$") for name, value in found["environment"].items()} == planned.env
    assert found["volumes"][0]["source"].replace("$$", "$") == planned.mounts[0].source


def test_quadlet_hands_over_odd_words_as_they_are(tools: Path, tmp_path: Path) -> None:
    planned = an_odd(ODD)
    files, _ = files_of("quadlet", planned, HEAD, {"argv.yes": "a # b: c \\", "env": "\x85 'x"})
    for path, text in files.items():
        (tmp_path / path).write_bytes(text.encode())
    done = subprocess.run(
        [tools / "usr/libexec/podman/quadlet", "--dryrun", "--user"],
        capture_output=True, timeout=60, check=False, env={"QUADLET_UNIT_DIRS": str(tmp_path)},
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    made = service.read(done.stdout.decode(), path="selfhost-it.service", files=NO_FILES)[0]
    assert made.argv == planned.argv
    assert made.env == planned.env
    assert made.labels == planned.labels
    assert [(one.source, one.target, one.read_only) for one in made.mounts] == [
        (one.source, one.target, one.read_only) for one in planned.mounts
    ]
