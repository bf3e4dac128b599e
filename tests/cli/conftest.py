"""Deployments as their files show them: started, running as this very process, ended, or damaged."""

import os
from collections.abc import Callable
from pathlib import Path

import pytest

from selfhost.core import processes
from selfhost.core.paths import Paths
from selfhost.deploy.state import State
from selfhost.plan.decide import decide
from selfhost.runtimes import records
from selfhost.runtimes.records import EngineRecord, ExitRecord
from tests.fakes.planning import a_host, a_service, smollm2

GONE = 1
"""A start time that this process does not have: an engine that is gone."""


class Deployed:
    """The files of one deployment. `ends` says how it ended; without it the engine is this process and runs."""

    def __init__(self, folder: Path, name: str) -> None:
        self.folder, self.name = folder, name

    def write(self, *, log: str, port: int = 9, **ends: object) -> None:
        service = a_service("HuggingFaceTB/SmolLM2-135M-Instruct", name=self.name)
        plan = decide(host=a_host(), model=smollm2(), service=service, port=port)
        State(Paths.of(os.environ), self.name, say=lambda _: None).write_wanted(service, plan)
        me = processes.me()
        ticks = GONE if ends else me.start_ticks
        record = EngineRecord(
            pid=me.pid, start_ticks=ticks, boot_id=processes.boot_id(), keeper_pid=me.pid, keeper_start_ticks=ticks,
            instance="i", plan_digest="d", port=port, started_at=1.0,
        )  # fmt: skip
        records.write(self.folder / "run" / "engine.json", record)
        if ends:
            how = {"code": None, "signal": None, "at": 2.0, **ends}
            records.write(self.folder / "run" / "exit.json", ExitRecord(instance="i", **how))
        (self.folder / "logs").mkdir(exist_ok=True)
        (self.folder / "logs" / "engine.log").write_text(log, encoding="utf-8")


@pytest.fixture
def deployed() -> Callable[..., Deployed]:
    def make(log: str, *, name: str = "mine", **more: object) -> Deployed:
        made = Deployed(Paths.of(os.environ).deployment(name), name)
        made.write(log=log, **more)
        return made

    return make
