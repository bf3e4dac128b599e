"""selfhost.yaml as a user has it: several services up, one by its name, locked, held to the lock, and down."""

import contextlib
import json
import socket
from pathlib import Path

import pytest

from tests.e2e.world import REASONER, World

pytestmark = pytest.mark.timeout(200)
TEXT = f"""version: 1
defaults: {{model: {REASONER}, devices: cpu}}
services:
  first:
    engine_args: [--max-num-batched-tokens, "512"]
  second: {{port: PORT, context: 1k}}
"""


@pytest.fixture
def world(make_world, free_tcp_port_of_test: int) -> World:
    made: World = make_world()
    (made.base / "selfhost.yaml").write_text(TEXT.replace("PORT", str(free_tcp_port_of_test)))
    return made


@pytest.fixture
def free_tcp_port_of_test() -> int:
    from selfhost.runtimes.ports import free_port

    return free_port(18700)


def rows(world: World) -> dict[str, dict[str, object]]:
    return {row["name"]: row for row in json.loads(world.run("status", "--json").stdout)["deployments"]}


def flags(world: World, name: str) -> list[str]:
    return Path(f"/proc/{rows(world)[name]['pid']}/cmdline").read_text().split("\0")


def test_services_of_a_file_from_up_to_down(world: World, free_tcp_port_of_test: int) -> None:
    done = world.run("up", "--json", "--progress", "quiet")
    assert done.returncode == 0, done.stderr[-3000:]
    ends = json.loads(done.stdout)["endpoints"]
    assert [(one["name"], one["ok"]) for one in ends] == [("first", True), ("second", True)]
    assert ends[1]["base_url"].endswith(f":{free_tcp_port_of_test}/v1")
    assert {name: row["state"] for name, row in rows(world).items()} == {"first": "ready", "second": "ready"}

    before = {name: row["pid"] for name, row in rows(world).items()}
    again = world.run("up", "first", "--json", "--progress", "quiet")
    assert json.loads(again.stdout)["fresh"] is False
    assert {name: row["pid"] for name, row in rows(world).items()} == before

    assert world.run("lock", "-q").returncode == 0
    assert world.run("lock", "--check", "-q").returncode == 0
    text = (world.base / "selfhost.lock").read_text()
    entry = json.loads(text)["services"]["first"]
    assert {file["path"]: len(file["sha256"]) for file in entry["files"]}["config.json"] == 64
    assert (entry["engine"], entry["runtime"], entry["context"]) == ("vllm", "process", 2048)
    held = world.run("up", "--locked", "--json", "--progress", "quiet")
    assert [one["fresh"] for one in json.loads(held.stdout)["endpoints"]] == [False, False]

    (world.base / "selfhost.lock").write_text(text.replace('"context": 1000', '"context": 512'))
    refused = world.run("up", "--locked", "-q")
    assert refused.returncode == 2
    assert "error[CF025]: `second`: this is not as locked: the context: 512 is locked, 1000 is here" in refused.stderr
    assert world.run("lock", "--check", "-q").returncode == 1
    (world.base / "selfhost.lock").write_text(text.replace("stack-lock/1", "stack-lock/2"))
    assert "error[CF024]" in world.run("up", "--locked", "-q").stderr

    typed = world.run("up", "first", "-q", "--", "--max-num-batched-tokens", "1024")
    assert typed.returncode == 0, typed.stderr[-3000:]
    words = flags(world, "first")
    assert words.count("--max-num-batched-tokens") == 1
    assert words[words.index("--max-num-batched-tokens") + 1] == "1024"
    assert "started with another engine args" in world.run("lock", "-q").stderr

    for name in ("first", "second"):
        assert world.run("down", name, "-q").returncode == 0
    assert world.processes() == {}


def test_an_unknown_name_is_no_service_and_no_model(world: World) -> None:
    refused = world.run("up", "frist", "-q")
    assert (refused.returncode, "perhaps `first`" in refused.stderr) == (2, True), refused.stderr


def test_rendered_files_are_compared_and_kept(world: World) -> None:
    words = ("render", "compose", "first", "-o", "out")
    out = world.base / "out"
    assert world.run(*words).stdout.count("written") == 2
    bytes_before = {path.name: path.read_bytes() for path in out.iterdir()}
    assert world.run(*words).stdout.count("unchanged") == 2
    assert {path.name: path.read_bytes() for path in out.iterdir()} == bytes_before
    with socket.socket() as busy:  # as when the rendered container runs
        busy.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        with contextlib.suppress(OSError):  # somebody else has it, which is the same
            busy.bind(("127.0.0.1", 8000))
            busy.listen()
        assert world.run(*words, "--check").returncode == 0
    other = world.run(*words, "--check", "--context", "512")
    assert (other.returncode, "+++ compose.yaml (from the plan)" in other.stdout) == (1, True)

    (out / "overrides").mkdir()
    own = out / "overrides" / "compose.override.yaml"
    own.write_text("services: {first: {environment: {MINE: here}}}\n")
    with (out / "compose.yaml").open("a") as file:
        file.write("# mine\n")
    refused = world.run(*words)
    assert refused.returncode == 2
    assert "error[RT031]" in refused.stderr
    assert "| -# mine" in refused.stderr, refused.stderr
    assert f"selfhost render compose first --file {world.base}/selfhost.yaml -o {out} --overwrite" in refused.stderr
    assert (out / "compose.yaml").read_text().endswith("# mine\n")
    assert world.run(*words, "--overwrite").returncode == 0
    assert [path.read_text().endswith("# mine\n") for path in out.glob("compose.yaml.edited-*")] == [True]
    assert own.read_text() == "services: {first: {environment: {MINE: here}}}\n"
    assert world.run(*words, "--check").returncode == 0
