"""`status` and `doctor --inside` on containers of ours that are killed, removed, replaced, and whose daemon goes."""

import json
import os
import shutil
from collections.abc import Iterator
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from selfhost.core.paths import Paths
from selfhost.core.secret import ensure_key
from selfhost.core.system import LocalSystem
from selfhost.deploy.state import Checks, State
from selfhost.plan.decide import decide
from selfhost.plan.digest import digest_of
from selfhost.runtimes.all import runtime_of
from selfhost.runtimes.base import Launchable
from selfhost.runtimes.ports import free_port
from selfhost.shapes.workload import Form, Workload
from tests.e2e.containers import ROOT, Client, Daemon, docker_daemon
from tests.e2e.images import TestImage, base, files, write_archive
from tests.e2e.world import settle
from tests.fakes.planning import a_host, a_service, smollm2

_ROOT = pytest.mark.skipif(
    os.geteuid() != 0 or not all(shutil.which(tool) for tool in ("dockerd", "debootstrap")),
    reason="a docker daemon of our own needs root and `make test`'s packages (scripts/test_tools.sh)",
)
pytestmark = [_ROOT, pytest.mark.slow]
IMAGE = "selfhost-test/served:1"
CARD = "GPU-025e6de3-5909-1af0-2d07-ba92fc076426"
"""Of no machine that runs these tests."""


@pytest.fixture(scope="module")
def daemon(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Daemon]:
    with docker_daemon(tmp_path_factory.mktemp("d")) as made:
        layer = files("served", {"workspace/engine.py": ROOT / "tests" / "fakes" / "engine.py"})
        image = TestImage(tags=(IMAGE,), layers=(base(), layer), entrypoint=("python3", "/workspace/engine.py"))
        archive = tmp_path_factory.mktemp("image") / "image.tar"
        with archive.open("wb") as out:
            write_archive([image], out)
        made.client.run("load", "--input", str(archive))
        archive.unlink()
        yield made


class Deployed:
    """A deployment as `up` leaves it: its folder, a key, a passed check, and its container."""

    def __init__(self, client: Client, home: Path, name: str) -> None:
        self.client, self.name = client, name
        self.client.env.update({"HOME": str(home), "XDG_STATE_HOME": str(home / "state")})
        self.paths = Paths.of(self.client.env)
        self.state = State(self.paths, name, say=lambda _: None)
        self.state.folder.mkdir(parents=True)
        self.runtime = runtime_of("docker", paths=self.paths, system=LocalSystem(client.env))

    def start(self, *words: str, restart: str = "no", device: str = "cpu") -> None:
        port = free_port(18600)
        service = a_service("HuggingFaceTB/SmolLM2-135M-Instruct", name=self.name, runtime="docker", device="cpu")
        plan = replace(decide(host=a_host(), model=smollm2(), service=service, port=port), device=device)
        self.state.write_wanted(service, plan)
        ensure_key(self.state.key_file)
        key = self.state.key_file.read_text().strip()
        workload = Workload(
            name=self.name,
            argv=("--host", "0.0.0.0", "--port", "8000", "--served-model-name", plan.model.served_name, *words),
            form=Form.COMPOSE,
            image=IMAGE,
            env={"VLLM_API_KEY": key},
            ports=(f"127.0.0.1:{port}:8000",),
            restart=restart,
            stop_grace_s=2.0,
        )
        seen = self.runtime.start(
            Launchable(name=self.name, workload=workload, plan_digest=digest_of(plan), port=port, stop_grace_s=2.0)
        )
        now = datetime.now(UTC).isoformat(timespec="microseconds")
        self.state.write_checks(
            Checks(plan_digest=digest_of(plan), instance=seen.instance, at=now, exit_code=0, summary="ok", report={})
        )

    def status(self) -> dict[str, Any]:
        done = self.client.selfhost("status", "--json")
        assert done.returncode == 0, done.stderr
        return next(row for row in json.loads(done.stdout)["deployments"] if row["name"] == self.name)

    def is_ready(self) -> bool:
        return settle(lambda: self.status()["state"] == "ready", timeout_s=60)


def _running(daemon: Daemon) -> None:
    """Also after a test that stopped it and failed."""
    daemon.stop()
    daemon.start()


@pytest.fixture
def deployed(daemon: Daemon, tmp_path: Path) -> Iterator[Deployed]:
    made = Deployed(daemon.client, tmp_path, "served")
    yield made
    _running(daemon)
    for container in daemon.client.run("ps", "-aq").split():
        daemon.client.run("rm", "-f", container)
    for network in daemon.client.run("network", "ls", "--filter", "label=io.selfhost.name", "-q").split():
        daemon.client.run("network", "rm", network)


def test_a_served_container_is_ready_with_its_id_and_its_runtime(deployed: Deployed) -> None:
    deployed.start()
    assert deployed.is_ready()
    found = deployed.status()
    shown = deployed.client.run("inspect", "--format", "{{.Id}}", "selfhost-served")
    assert (found["runtime"], found["container"], found["restarts"]) == ("docker", shown[:12], 0)
    assert found["checked"].startswith("ok (")
    assert found["cards"] == []


def test_without_its_daemon_it_is_unknown_and_others_are_still_told(deployed: Deployed, daemon: Daemon) -> None:
    deployed.start()
    assert deployed.is_ready()
    other = State(deployed.paths, "other", say=lambda _: None)
    other.folder.mkdir(parents=True)
    service = a_service("HuggingFaceTB/SmolLM2-135M-Instruct", name="other", device="cpu")
    other.write_wanted(service, decide(host=a_host(), model=smollm2(), service=service, port=9))
    daemon.stop()
    found = deployed.status()
    assert found["state"] == "unknown"
    assert "daemon of docker does not run" in found["health"]
    assert "selfhost doctor" in found["health"]
    assert found["runtime"] == "docker"
    rows = json.loads(deployed.client.selfhost("status", "--json").stdout)["deployments"]
    assert {row["name"]: row["state"] for row in rows} == {"served": "unknown", "other": "stopped"}


def test_after_a_restart_of_the_daemon_it_is_back_and_its_check_is_stale(deployed: Deployed, daemon: Daemon) -> None:
    deployed.start(restart="unless-stopped")
    assert deployed.is_ready()
    daemon.stop()
    daemon.start()
    assert deployed.is_ready()
    said = deployed.status()["checked"]
    assert said.startswith("stale, it was started again at ")
    assert "container and plan are the same" in said
    assert ": ok (" in said


def test_a_container_that_does_not_come_back_says_why_and_the_command(deployed: Deployed, daemon: Daemon) -> None:
    deployed.start(restart="no")
    assert deployed.is_ready()
    checks = deployed.state.checks()
    assert checks is not None
    deployed.state.write_checks(replace(checks, exit_code=1))
    daemon.stop()
    daemon.start()
    found = deployed.status()
    assert found["state"] in ("stopped", "failed")
    assert "It is not started again by itself: this start was not checked" in found["health"]
    assert "Start it again: selfhost up" in found["health"]


def test_a_killed_container_failed_by_137_without_lack_of_memory(deployed: Deployed) -> None:
    deployed.start()
    assert deployed.is_ready()
    deployed.client.run("kill", "--signal", "KILL", "selfhost-served")
    settle(lambda: deployed.status()["state"] == "failed")
    found = deployed.status()
    assert found["state"] == "failed"
    assert "SIGKILL (exit code 137; docker saw no lack of memory in it)" in found["health"]
    assert "selfhost explain" not in found["health"]


def test_an_engine_that_ends_by_itself_is_started_again_and_counted(deployed: Deployed) -> None:
    deployed.start("--fault", "exit-3", restart="on-failure:2")
    assert settle(lambda: deployed.status()["restarts"] == 2, timeout_s=60)
    assert settle(lambda: "starts it again" not in deployed.status()["health"], timeout_s=60)
    found = deployed.status()
    assert found["state"] == "failed"
    assert "exit code 3" in found["health"]
    assert "Why: selfhost explain served" in found["health"]
    assert found["restarted"].startswith("started again by itself 2 times")


def test_an_engine_that_is_just_started_again_needs_no_command(deployed: Deployed) -> None:
    deployed.start("--fault", "exit-3", restart="unless-stopped")
    seen: list[str] = []

    def waits() -> bool:
        seen.append(deployed.status()["health"])
        return "starts it again" in seen[-1]

    assert settle(waits, timeout_s=60)
    assert "Start it again:" not in seen[-1]


def test_a_container_removed_by_hand_is_stopped(deployed: Deployed) -> None:
    deployed.start()
    assert deployed.is_ready()
    deployed.client.run("rm", "-f", "selfhost-served")
    found = deployed.status()
    assert found["state"] == "stopped"
    assert "there is no container of it" in found["health"]
    assert found["container"] == ""


def test_another_container_under_its_name_is_told_and_not_taken_for_ours(deployed: Deployed) -> None:
    deployed.start()
    assert deployed.is_ready()
    deployed.client.run("rm", "-f", "selfhost-served")
    theirs = deployed.client.run("run", "-d", "--name", "selfhost-served", "--network", "none", IMAGE)
    found = deployed.status()
    assert found["state"] == "stopped"
    assert "somebody else's, and is left alone. See what it is: docker inspect selfhost-served" in found["health"]
    assert found["container"] == ""
    assert deployed.client.run("ps", "-q", "--no-trunc") == theirs


def test_an_engine_that_hangs_is_asked_for_its_cards(deployed: Deployed) -> None:
    """A planned card that this machine does not have is one that fell off its bus."""
    deployed.start("--fault", "generate-500", device=CARD)
    assert settle(lambda: deployed.status()["state"] == "not answering", timeout_s=60)
    found = deployed.status()
    assert [card["fate"] for card in found["cards"]] == ["lost: off the bus"]
    assert "is off the bus" in found["health"]
    done = deployed.client.selfhost("doctor", "--json")
    assert done.returncode == 1
    said = json.loads(done.stdout)
    assert "HX310" in [finding["id"] for finding in said["findings"]]
    assert [area["state"] for area in said["areas"] if area["name"] == "deployments"] == ["error"]


@pytest.mark.parametrize("word", ["served", "selfhost-served", "docker:selfhost-served"])
def test_doctor_looks_into_a_deployment_by_its_name_and_by_its_container_s(deployed: Deployed, word: str) -> None:
    deployed.start()
    assert deployed.is_ready()
    done = deployed.client.selfhost("doctor", "--inside", word, "--json")
    assert done.returncode == 0, done.stderr
    said = json.loads(done.stdout)
    plan = deployed.state.plan()
    assert plan is not None
    assert said["deployment"] == {"name": "served", "plan": digest_of(plan), "cards": []}
    assert said["inside"] == []
    (area,) = (area for area in said["areas"] if area["name"] == "deployment")
    assert area["state"] == "ok"
    plain = deployed.client.selfhost("doctor", "--inside", word)
    assert (
        plain.stdout.splitlines()[0]
        == f"served: vLLM {plan.build.version} on the processor, plan {digest_of(plan)[:12]}"
    )


def test_a_container_that_ended_lets_nobody_in_but_its_lost_card_is_told(deployed: Deployed) -> None:
    deployed.start(device=CARD)
    assert deployed.is_ready()
    deployed.client.run("kill", "selfhost-served")
    done = deployed.client.selfhost("doctor", "--inside", "served", "--json")
    assert done.returncode == 1
    assert [finding["id"] for finding in json.loads(done.stdout)["findings"]] == ["HX310"]
    deployed.start()
    deployed.client.run("kill", "selfhost-served")
    refused = deployed.client.selfhost("doctor", "--inside", "served")
    assert refused.returncode == 4
    assert "does not run" in refused.stderr


def test_a_deployment_that_is_a_process_has_no_inside(deployed: Deployed) -> None:
    other = State(deployed.paths, "plain", say=lambda _: None)
    other.folder.mkdir(parents=True)
    service = a_service("HuggingFaceTB/SmolLM2-135M-Instruct", name="plain", device="cpu")
    other.write_wanted(service, decide(host=a_host(), model=smollm2(), service=service, port=9))
    done = deployed.client.selfhost("doctor", "--inside", "plain")
    assert done.returncode == 2
    assert "CF105" in done.stderr
