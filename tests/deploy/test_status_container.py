"""What status says of a container that was started again, or never will be."""

from dataclasses import replace
from datetime import UTC, datetime

import pytest

from selfhost.deploy.state import Checks
from selfhost.deploy.status import Status
from selfhost.deploy.status_container import is_coming_back, killed, restarted, started_again, stays_down
from selfhost.deploy.status_words import lines
from selfhost.runtimes.base import EngineState, RuntimeInfo, Seen
from selfhost.shapes.plan import Plan
from tests.plan.container_hosts import docker, host, plan_on, podman

CHECKED = 1_764_700_000
DOCKER = RuntimeInfo(
    name="docker", isolates=True, restarts=True, survives_reboot=True, sees_processes=True, containers=True
)
PODMAN = replace(DOCKER, name="podman", survives_reboot=False)
PROCESS = replace(DOCKER, name="process", containers=False)
RUNS = Seen(
    state=EngineState.RUNNING, container="3f2a1b0c9d8e", instance="i", plan_digest="d", started_at=CHECKED - 60.0
)
ENDED = replace(RUNS, state=EngineState.EXITED, exit_code=1)


def checks(*, instance: str = "i", code: int = 0) -> Checks:
    at = datetime.fromtimestamp(CHECKED, UTC).isoformat(timespec="seconds")
    return Checks(plan_digest="d", instance=instance, at=at, exit_code=code, summary="16 passed", report={})


def a_plan(name: str = "rtx4090") -> Plan:
    return plan_on(host(name, docker("28.4.0", runtimes=("runc", "nvidia"))), "docker")


@pytest.mark.parametrize(
    ("seen", "booted_at", "how"),
    [
        (replace(RUNS, started_at=CHECKED + 5.0), CHECKED - 9e6, "by the container engine or by hand"),
        (replace(RUNS, started_at=CHECKED + 5.0, restarts=2), CHECKED - 9e6, "by itself"),
        (replace(RUNS, started_at=CHECKED + 50.0), CHECKED + 40.0, "with the machine"),
        (RUNS, CHECKED - 9e6, ""),
        (replace(RUNS, started_at=CHECKED + 5.0, instance="other"), 0.0, ""),
        (replace(RUNS, started_at=CHECKED + 5.0, container=""), 0.0, ""),
        (replace(ENDED, started_at=CHECKED + 5.0), 0.0, ""),
    ],
)
def test_a_start_after_the_check_is_told_with_what_started_it(seen, booted_at, how) -> None:
    said = started_again(seen, checks(), booted_at=booted_at)
    assert said.endswith(how) if how else said == ""
    assert not how or said.startswith("it was started again at 20")


@pytest.mark.parametrize(("count", "said"), [(0, ""), (1, "started again by itself once since 14:02"),
                                             (3, "started again by itself 3 times since 14:02")])  # fmt: skip
def test_restarts_are_counted(count, said) -> None:
    assert restarted(replace(RUNS, restarts=count), DOCKER, since="14:02") == said


def test_a_start_that_was_not_checked_is_not_started_again() -> None:
    for kept in (None, checks(instance="other"), checks(code=1)):
        assert "was not checked" in stays_down(a_plan(), ENDED, kept, DOCKER, booted_at=0.0)
    assert stays_down(a_plan(), ENDED, checks(), DOCKER, booted_at=0.0) == ""


def test_on_unified_memory_the_reason_is_that_memory() -> None:
    plan = a_plan("dgx-spark")
    assert plan.container is not None
    assert plan.container.restart_checked == "no"
    assert "share one memory" in stays_down(plan, ENDED, checks(), DOCKER, booted_at=0.0)


def test_podman_starts_nothing_with_the_machine() -> None:
    plan = plan_on(host("bare-no-cards", podman()), "podman")
    assert "--runtime quadlet" in stays_down(plan, ENDED, checks(), PODMAN, booted_at=CHECKED + 9.0)
    assert stays_down(plan, ENDED, checks(), PODMAN, booted_at=CHECKED - 9.0) == ""


def test_an_engine_that_is_started_again_has_no_reason_to_stay_down() -> None:
    coming = replace(ENDED, reason="the engine ended with exit code 3, and the container engine starts it again")
    assert is_coming_back(coming)
    assert stays_down(a_plan(), coming, None, DOCKER, booted_at=0.0) == ""


@pytest.mark.parametrize(
    ("info", "seen", "said"),
    [
        (DOCKER, replace(ENDED, exit_code=None, signal=9), " (exit code 137; docker saw no lack of memory in it)"),
        (DOCKER, replace(ENDED, exit_code=None, signal=9, out_of_memory=True), " (exit code 137)"),
        (DOCKER, ENDED, ""),
        (PROCESS, replace(ENDED, exit_code=None, signal=9), ""),
    ],
)
def test_a_kill_is_told_with_what_the_container_engine_counted(info, seen, said) -> None:
    assert killed(seen, info) == said


def test_the_lines_of_a_container_name_it_and_its_own_check() -> None:
    found = Status(
        name="q", state="ready", runtime="docker", container="3f2a1b0c9d8e", container_health="unhealthy",
        restarted="started again by itself once",
    )  # fmt: skip
    line = next(line for line in lines(found) if "runs in" in line)
    assert line.split(maxsplit=2)[2] == (
        "docker container 3f2a1b0c9d8e, its own check: unhealthy, started again by itself once"
    )
    assert not [line for line in lines(Status(name="q", state="ready", runtime="process")) if "runs in" in line]
    assert {"runtime": "docker", "container": "3f2a1b0c9d8e", "restarts": 0}.items() <= found.to_json().items()
