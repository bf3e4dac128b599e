"""The output of a unit, as the journal keeps it."""

from dataclasses import dataclass
from pathlib import Path

from selfhost.runtimes.systemd import Systemd

_CURSOR = "-- cursor: "


@dataclass(slots=True)
class JournalLog:
    """What the journal has since the unit was installed. Satisfies runtimes.base.Log."""

    systemd: Systemd
    unit: str
    installed: Path
    _cursor: str = ""

    @property
    def where(self) -> str:
        return f"journalctl{' --user' if self.systemd.of_user else ''} --unit {self.unit}"

    @property
    def exists(self) -> bool:
        return self.installed.exists()

    def more(self) -> str:
        begin = (f"--after-cursor={self._cursor}",) if self._cursor else self._since()
        done = self.systemd.journal(self.unit, "--show-cursor", *begin)
        lines = done.stdout.splitlines(keepends=True) if done.ok else []
        for line in lines:
            if line.startswith(_CURSOR):
                self._cursor = line.removeprefix(_CURSOR).strip()
        return "".join(line for line in lines if not line.startswith(_CURSOR))

    def last(self, lines: int | None) -> str:
        most = () if lines is None else (f"--lines={lines}",)
        return self.systemd.journal(self.unit, *most, *self._since()).stdout if self.exists else ""

    def _since(self) -> tuple[str, ...]:
        """The present start: its unit is written just before."""
        try:
            return (f"--since=@{int(self.installed.stat().st_mtime)}",)
        except FileNotFoundError:
            return ()
