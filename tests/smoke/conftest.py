"""A bench on which smoke runs against the fake engine, inside this process."""

from pathlib import Path

import pytest

from selfhost.core.secret import ensure_key
from selfhost.shapes.endpoint import Endpoint, SecretRef
from selfhost.shapes.plan import ReasoningPlan
from selfhost.shapes.service import ReasoningMode
from selfhost.smoke.report import SmokeReport
from selfhost.smoke.runner import catalog, run
from tests.fakes.engine import FakeEngine, Options

CONTEXT = 1024
ON = {"chat_template_kwargs": {"enable_thinking": True}}
OFF = {"chat_template_kwargs": {"enable_thinking": False}}


def thinker(mode: ReasoningMode, **more: object) -> ReasoningPlan:
    return ReasoningPlan(
        mode=mode, parser="qwen3", can_think=True, can_switch=True, request_on=ON, request_off=OFF, **more
    )


PLANS = {
    "none": ReasoningPlan(mode=ReasoningMode.OFF),
    "on": thinker(ReasoningMode.ON),
    "off": thinker(ReasoningMode.OFF),
    "budget": thinker(ReasoningMode.BUDGET, budget_tokens=6, client_extras={"thinking_token_budget": 6}),
    "always": ReasoningPlan(mode=ReasoningMode.ON, parser="qwen3", can_think=True, can_switch=False),
}


class Bench:
    """Starts a fake engine and runs smoke on it. `plan` is one of PLANS; `foreign` is a URL without a plan."""

    quick = tuple(spec.id for spec, _ in catalog() if spec.id != "SM020")
    """All but the one that starts a Python of its own."""

    def __init__(self, key_file: Path) -> None:
        self.key_file = key_file
        self.key = key_file.read_text().strip()

    def options(self, *faults: str, plan: str = "none") -> Options:
        defaults = {"enable_thinking": False} if plan == "off" else {}
        return Options(
            context=CONTEXT,
            parser=PLANS[plan].parser,
            key=self.key,
            faults=frozenset(faults),
            token_s=0.0,
            template_defaults=defaults,
        )

    def endpoint(self, url: str, *, plan: str = "none", foreign: bool = False, model_dir: str = "") -> Endpoint:
        return Endpoint(
            name="toy",
            base_url=url,
            model="toy",
            engine="vllm",
            engine_version="0.32.0",
            runtime="" if foreign else "process",
            context=None if foreign else CONTEXT,
            key=SecretRef(str(self.key_file)),
            reasoning=None if foreign else PLANS[plan],
            model_dir=model_dir,
        )

    def smoke(
        self,
        *faults: str,
        plan: str = "none",
        only: tuple[str, ...] = quick,
        foreign: bool = False,
        model_dir: str = "",
    ) -> SmokeReport:
        with FakeEngine(self.options(*faults, plan=plan)) as engine:
            endpoint = self.endpoint(engine.url, plan=plan, foreign=foreign, model_dir=model_dir)
            return run(endpoint, key=self.key, only=only)


@pytest.fixture
def bench(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Bench:
    monkeypatch.setattr("selfhost.smoke.checks.dropped.POLL_S", 0.005)
    path = tmp_path / "key"
    ensure_key(path)
    return Bench(path)
