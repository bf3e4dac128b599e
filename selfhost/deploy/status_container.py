"""What is true of a deployment only because it runs in a container: its engine starts it again, or never does. Pure."""

import signal
from datetime import datetime

from selfhost.deploy.state import Checks
from selfhost.runtimes.base import RuntimeInfo, Seen
from selfhost.shapes.exit import ExitCode
from selfhost.shapes.plan import Plan


def started_again(seen: Seen, checks: Checks, *, booted_at: float) -> str:
    """The same container, started anew after it was checked; empty otherwise. `booted_at`: 0.0 when not known."""
    checked_at = seconds(checks.at)
    same = (checks.plan_digest, checks.instance) == (seen.plan_digest, seen.instance)
    if not (seen.container and seen.alive and same and checked_at and seen.started_at > checked_at):
        return ""
    if booted_at > checked_at:
        how = "with the machine"
    elif seen.restarts:
        how = "by itself"
    else:
        how = "by the container engine or by hand"
    return f"it was started again at {clock(seen.started_at)}, {how}"


def restarted(seen: Seen, info: RuntimeInfo, *, since: str) -> str:
    """`started again by itself 2 times since …`; `since` is when the deployment was started."""
    if not (info.containers and seen.restarts):
        return ""
    times = "once" if seen.restarts == 1 else f"{seen.restarts} times"
    return f"started again by itself {times}" + (f" since {since}" if since else "")


def stays_down(plan: Plan, seen: Seen, checks: Checks | None, info: RuntimeInfo, *, booted_at: float) -> str:
    """Why nobody starts an ended container again, as a sentence; empty where it is not known."""
    container = plan.container
    if container is None or is_coming_back(seen):
        return ""
    ours = checks is not None and checks.instance == seen.instance
    if not ours or checks is None or checks.exit_code != ExitCode.OK:
        return "It is not started again by itself: this start was not checked to the end"
    if container.restart_checked == "no":
        why = plan.decision("restart")
        return f"It is not started again by itself{f': {why.reason}' if why is not None else ''}"
    if not info.survives_reboot and booted_at > seconds(checks.at):
        return f"{info.name} starts no container with the machine; --runtime quadlet does"
    return ""


def is_coming_back(seen: Seen) -> bool:
    return seen.reason.endswith("starts it again")


def killed(seen: Seen, info: RuntimeInfo) -> str:
    """What the container engine knows of a kill, beside the signal."""
    if not info.containers or seen.signal != signal.SIGKILL:
        return ""
    return " (exit code 137)" if seen.out_of_memory else f" (exit code 137; {info.name} saw no lack of memory in it)"


def seconds(at: str) -> float:
    """Of an ISO time; 0.0 for what is none."""
    try:
        return datetime.fromisoformat(at).timestamp()
    except ValueError:
        return 0.0


def clock(at: float) -> str:
    return datetime.fromtimestamp(at).astimezone().isoformat(timespec="seconds")
