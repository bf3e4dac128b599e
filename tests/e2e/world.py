"""A home of its own, in which the real command runs against an engine that real pip installs from fake wheels."""

import json
import os
import signal
import subprocess
import sys
import time
import uuid
from dataclasses import dataclass, field
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
REASONER = ROOT / "tests" / "assets" / "tiny-reasoner"


@dataclass
class World:
    """One isolated user of this machine. `name` is unique, so that its processes can be told from all others."""

    base: Path
    wheels: Path | None
    extra_env: dict[str, str] = field(default_factory=dict)
    name: str = field(default_factory=lambda: f"w-{uuid.uuid4().hex[:8]}")

    @property
    def env(self) -> dict[str, str]:
        kept = {k: v for k, v in os.environ.items() if not k.startswith(("PIP_", "XDG_", "HF_", "SELFHOST_", "FAKE_"))}
        fake = {}
        if self.wheels is not None:
            fake = {"PIP_NO_INDEX": "1", "PIP_FIND_LINKS": str(self.wheels), "PIP_CONFIG_FILE": "/dev/null"}
        return {
            **kept,
            **fake,
            "HOME": str(self.base),
            "XDG_STATE_HOME": str(self.base / "state"),
            "XDG_CACHE_HOME": str(self.base / "cache"),
            "HF_HUB_OFFLINE": "1",
            "NO_COLOR": "1",
            "PYTHONPATH": str(ROOT),
            **self.extra_env,
        }

    @property
    def folder(self) -> Path:
        return self.base / "state" / "selfhost" / "deployments" / self.name

    def argv(self, *words: str) -> list[str]:
        return [sys.executable, "-m", "selfhost", *words]

    def run(self, *words: str, timeout_s: float = 300) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            self.argv(*words), env=self.env, cwd=self.base, capture_output=True, text=True, timeout=timeout_s
        )

    def start(self, *words: str) -> subprocess.Popen[str]:
        return subprocess.Popen(
            self.argv(*words),
            env=self.env,
            cwd=self.base,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            start_new_session=True,
        )

    def up(self, *words: str, timeout_s: float = 300) -> subprocess.CompletedProcess[str]:
        return self.run(*self.up_words(*words), timeout_s=timeout_s)

    def up_words(self, *words: str) -> tuple[str, ...]:
        return ("up", str(REASONER), "--name", self.name, "--device", "cpu", "--progress", "json", *words)

    def down(self) -> subprocess.CompletedProcess[str]:
        return self.run("down", self.name)

    def status(self) -> dict[str, object]:
        found = json.loads(self.run("status", "--json").stdout)["deployments"]
        return next((row for row in found if row["name"] == self.name), {})

    def processes(self) -> dict[int, str]:
        """Every live process whose environment belongs to this world, except commands we are running ourselves."""
        mark = f"XDG_STATE_HOME={self.base / 'state'}".encode()
        found = {}
        for entry in Path("/proc").iterdir():
            if not entry.name.isdigit():
                continue
            try:
                environment = (entry / "environ").read_bytes().split(b"\0")
                command = (entry / "cmdline").read_bytes().replace(b"\0", b" ").decode("utf-8", "replace").strip()
            except (OSError, ProcessLookupError):
                continue
            if mark in environment and command:
                found[int(entry.name)] = command
        return found

    def engines(self) -> list[int]:
        return [pid for pid, command in self.processes().items() if "vllm.entrypoints" in command]

    def end(self) -> None:
        """Take everything down; what is left is killed by pid, and reported as a fault of the test."""
        self.down()
        left = self.processes()
        for pid in left:
            os.kill(pid, signal.SIGKILL)
        assert not left, f"left behind: {left}"


def settle(predicate, *, timeout_s: float = 10.0):
    """Wait until `predicate()` is true."""
    deadline = time.monotonic() + timeout_s
    while time.monotonic() < deadline:
        if predicate():
            return True
        time.sleep(0.05)
    return predicate()
