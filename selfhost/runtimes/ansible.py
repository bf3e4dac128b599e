"""A play on this machine by ansible-runner, as events. The only import of ansible_runner, in a process of its own.

ansible-runner hands its own environment on to Ansible, so that process gets one that we made: no ANSIBLE_* of the
user's, no ansible.cfg. It also takes the signals of the process that it runs in.
"""

import json
import shutil
import sys
import sysconfig
import tempfile
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from importlib.util import find_spec
from pathlib import Path
from typing import Any, Final, Literal

from selfhost.core.errors import EnvironmentMissing
from selfhost.core.resources import resource
from selfhost.core.stream import stream

TIMEOUT_S: Final = 3600.0
_MARK: Final = "selfhost-event "
_HANDED_ON: Final = (
    "HOME", "USER", "TMPDIR", "PYTHONPATH", "SSL_CERT_FILE", "SSL_CERT_DIR",
    "http_proxy", "https_proxy", "no_proxy", "HTTP_PROXY", "HTTPS_PROXY", "NO_PROXY",
)  # fmt: skip
_STATES: Final = {
    "playbook_on_task_start": "started",
    "runner_on_ok": "ok",
    "runner_on_skipped": "skipped",
    "runner_on_failed": "failed",
    "runner_on_unreachable": "failed",
}
_SAFE_PATH: Final = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"


@dataclass(frozen=True, slots=True, kw_only=True)
class Play:
    """`variables` are the play's extra variables; `become`: through `sudo -n`."""

    playbook: str
    variables: Mapping[str, object] = field(default_factory=dict)
    check: bool = False
    become: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class TaskEvent:
    """One change of one task. `said` is the task's own message; `output` what its command printed."""

    state: Literal["started", "ok", "changed", "skipped", "failed"]
    role: str
    task: str
    said: str = ""
    output: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Ended:
    """How the play ended. `output` is what ansible itself printed last, for a play that never got to a task."""

    ok: bool
    timed_out: bool = False
    output: str = ""


def missing() -> EnvironmentMissing | None:
    """Why no play can be run here, or None."""
    lacks = [name for name in ("ansible", "ansible_runner") if find_spec(name) is None]
    if not lacks:
        return None
    verb = "is" if len(lacks) == 1 else "are"
    return EnvironmentMissing(
        "`prepare` needs ansible-core and ansible-runner, which are not installed",
        why=f"They come with the extra `prepare`; {' and '.join(lacks)} {verb} not beside {sys.executable}.",
        fix=(f"install it there:\n{sys.executable} -m pip install 'selfhost-kit[prepare]'",),
        id="RT090",
    )


def run(play: Play, *, env: Mapping[str, str], on_event: Callable[[TaskEvent], None]) -> Ended:
    """Run a play of ours on this machine. All that it writes for itself lies in one private folder, which then goes."""
    if (lack := missing()) is not None:
        raise lack
    folder = Path(tempfile.mkdtemp(prefix="selfhost-prepare-"))
    printed: list[str] = []

    def line(text: str) -> None:
        if text.startswith(_MARK):
            on_event(TaskEvent(**json.loads(text.removeprefix(_MARK))))
        elif text.strip():
            printed.append(text)

    try:
        (folder / "play.json").write_text(json.dumps(_request(play, folder)), encoding="utf-8")
        done = stream(
            [sys.executable, "-P", str(Path(__file__)), str(folder)],
            env=_environment(env, folder),
            timeout_s=TIMEOUT_S,
            on_line=line,
        )
    finally:
        shutil.rmtree(folder, ignore_errors=True)
    return Ended(ok=done.rc == 0, timed_out=done.timed_out, output="\n".join(printed[-20:]))


def _request(play: Play, folder: Path) -> dict[str, Any]:
    """Keyword arguments of ansible_runner.run."""
    variables = {
        "ansible_connection": "local",
        "ansible_python_interpreter": sys.executable,
        "ansible_become": play.become,
        "ansible_become_flags": "-H -S -n",
        **play.variables,
    }
    return {
        "private_data_dir": str(folder),
        "playbook": str(resource("playbooks", play.playbook)),
        "inventory": {"all": {"hosts": {"localhost": {}}}},
        "extravars": variables,
        "cmdline": "--check" if play.check else None,
        "settings": {"pexpect_timeout": 1, "job_timeout": 0, "suppress_output_file": True},
        "suppress_env_files": True,
        "quiet": True,
    }


def _environment(env: Mapping[str, str], folder: Path) -> dict[str, str]:
    beside = dict.fromkeys((str(Path(sys.executable).parent), sysconfig.get_path("scripts")))
    kept = {name: env[name] for name in _HANDED_ON if name in env}
    return {
        **kept,
        "PATH": ":".join((*beside, _SAFE_PATH)),
        "LC_ALL": "C.UTF-8",
        "TERM": "dumb",
        "ANSIBLE_CONFIG": str(folder / "ansible.cfg"),
        "ANSIBLE_HOME": str(folder / "home"),
        "ANSIBLE_LOCAL_TEMP": str(folder / "local"),
        "ANSIBLE_REMOTE_TEMP": str(folder / "remote"),
        "ANSIBLE_NOCOLOR": "1",
        "ANSIBLE_DEPRECATION_WARNINGS": "0",
        "ANSIBLE_INJECT_FACT_VARS": "0",
    }


def _child(folder: str) -> int:
    """In the process of its own: run what the request asks for and print an event a line."""
    import ansible_runner  # type: ignore[import-untyped]  # at use: 133 ms, and only here

    request = json.loads((Path(folder) / "play.json").read_text(encoding="utf-8"))
    (Path(folder) / "ansible.cfg").write_text("[defaults]\n", encoding="utf-8")
    done = ansible_runner.run(**request, event_handler=_tell)
    return 0 if done.status == "successful" else 1


def _tell(event: Mapping[str, Any]) -> bool:
    """Print an event of interest. False: ansible-runner keeps no file of it."""
    data = event.get("event_data") or {}
    state = _STATES.get(str(event.get("event")))
    if state is None:
        if event.get("event") in ("verbose", "error", "warning") and event.get("stdout"):
            sys.stdout.write(f"{event['stdout']}\n")
        return False
    result = data.get("res") or {}
    if state == "failed" and data.get("ignore_errors"):
        state = "ok"
    told = {
        "state": "changed" if state == "ok" and result.get("changed") else state,
        "role": str(data.get("role") or ""),
        "task": str(data.get("task") or ""),
        "said": _said(result),
        # Each for itself: what a tool prints at length must not push out what it says of the error.
        "output": "\n".join(str(result[key]).strip()[-8000:] for key in ("stdout", "stderr") if result.get(key)),
    }
    sys.stdout.write(f"{_MARK}{json.dumps(told)}\n")
    sys.stdout.flush()
    return False


def _said(result: Mapping[str, Any]) -> str:
    """The message of a task; of a loop, those of its items that have one."""
    items = [str(one.get("msg") or "") for one in result.get("results") or () if not one.get("skipped")]
    return str(result.get("msg") or "") if not items or not any(items) else "\n".join(filter(None, items))


if __name__ == "__main__":
    sys.exit(_child(sys.argv[1]))
