"""systemd as far as one unit of ours needs it: the system's own for root, else the user's."""

from collections.abc import Mapping, Sequence

from selfhost.core.errors import EnvironmentMissing
from selfhost.core.system import Completed, System

START_S = 300.0
TIMEOUT_S = 30.0
_SHOWN = ("LoadState", "ActiveState", "SubState", "Result", "ExecMainCode", "ExecMainStatus", "NRestarts")


class Systemd:
    """Every call runs a command; nothing is kept."""

    def __init__(self, system: System) -> None:
        self._system = system
        self._user = () if system.ids.get("uid") == 0 else ("--user",)

    @property
    def of_user(self) -> bool:
        return bool(self._user)

    def check(self) -> None:
        """Raises EnvironmentMissing where there is no systemd to ask."""
        done = self._ctl("show", "--property=Version")
        if done.ok and "Version=" in done.stdout:
            return
        said = (done.stderr or done.stdout).strip()
        if "Failed to connect to" in said and "bus" in said and self._user:
            raise EnvironmentMissing(
                "systemd of this user can't be reached",
                why="Quadlet's units are the user's own, and `su` and `sudo -u` open no session with a bus to it.",
                fix=(
                    "log in as this user, or let its systemd run without a login:\nsudo loginctl enable-linger $USER",
                    "or let podman run it without systemd:\nselfhost up --runtime podman",
                ),
                evidence=said[:300],
                id="RT087",
            )
        raise EnvironmentMissing(
            "Quadlet needs systemd, and there is none here",
            why="Its units are started by systemd; this machine or container runs without it.",
            fix=("let podman run it without systemd:\nselfhost up --runtime podman",),
            evidence=said[:300],
            id="RT082",
        )

    def reload(self) -> None:
        done = self._ctl("daemon-reload")
        if not done.ok:
            raise self.failed("daemon-reload", done)

    def start(self, unit: str) -> Completed:
        return self._ctl("start", unit, timeout_s=START_S)

    def stop(self, unit: str, *, timeout_s: float) -> Completed:
        return self._ctl("stop", unit, timeout_s=timeout_s + TIMEOUT_S)

    def forget_failure(self, unit: str) -> None:
        """One that failed too often starts again only after this; one that is not loaded is no error."""
        self._ctl("reset-failed", unit)

    def show(self, unit: str) -> Mapping[str, str]:
        """Empty where systemd gives no answer."""
        done = self._ctl("show", f"--property={','.join(_SHOWN)}", unit)
        pairs = (line.partition("=") for line in done.stdout.splitlines()) if done.ok else ()
        return {name: value for name, _, value in pairs}

    def journal(self, unit: str, *options: str) -> Completed:
        argv = ("journalctl", *self._user, "--unit", unit, "--no-pager", "--quiet", "--output=cat", *options)
        return self._system.run(argv, timeout_s=TIMEOUT_S)

    def command(self, *words: str) -> str:
        """As a person types it."""
        return " ".join(("systemctl", *self._user, *words))

    def failed(self, what: str, done: Completed, *, evidence: str = "") -> EnvironmentMissing:
        return EnvironmentMissing(
            f"systemd could not do `{self.command(what)}`",
            why="Its own words are below.",
            fix=(f"see how the unit is:\n{self.command('status', what.rsplit(maxsplit=1)[-1])}",),
            evidence=evidence or (done.stderr or done.stdout).strip()[-600:],
            id="RT084",
        )

    def _ctl(self, *words: str, timeout_s: float = TIMEOUT_S) -> Completed:
        argv: Sequence[str] = ("systemctl", *self._user, *words)
        return self._system.run(argv, timeout_s=timeout_s)
