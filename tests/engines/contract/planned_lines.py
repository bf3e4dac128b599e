"""Whole plans: the catalog on recorded machines, in every mode that each model allows."""

from functools import cache
from itertools import cycle
from pathlib import Path

from selfhost.core.errors import SelfhostError
from selfhost.core.recorded import Recorded
from selfhost.hosts.detect import detect
from selfhost.models.catalog import CatalogRow
from selfhost.models.catalog import rows as catalog
from selfhost.plan.decide import decide
from selfhost.shapes.host import Host, Known
from selfhost.shapes.model import Model
from selfhost.shapes.plan import Plan
from selfhost.shapes.service import ReasoningAsk, ReasoningMode, Service
from tests.fakes.planning import a_model

SNAPSHOTS = Path(__file__).parents[2] / "snapshots"
MACHINES = {
    "vllm": ("rtx3060", "rtx4090", "eight-h100", "gb10", "amd-mi300x", "rx7900xtx", "arc-b580", "bare-no-cards"),
    "sglang": ("rtx4090", "eight-h100", "gb10", "amd-mi300x"),
}
MODES = (
    None,
    ReasoningAsk(mode=ReasoningMode.ON),
    ReasoningAsk(mode=ReasoningMode.OFF),
    ReasoningAsk(mode=ReasoningMode.BUDGET, budget_tokens=512),
    ReasoningAsk(mode=ReasoningMode.EFFORT, effort="high"),
)
PRECISIONS = (None, "bf16", "fp8")
CACHES = (None, "fp8")


@cache
def plans(engine: str) -> tuple[Plan, ...]:
    """All that are possible; a combination that is refused, because the model or the card cannot, is left out."""
    hosts = cycle([detect(Recorded.load(SNAPSHOTS / f"{name}.json")) for name in MACHINES[engine]])
    precisions, caches = cycle(PRECISIONS), cycle(CACHES)
    found = []
    for row in catalog():
        model = _model(row)
        for mode in MODES:
            service = Service(
                model=row.alias,
                name="it",
                engine=engine,
                reasoning=mode,
                context=min(row.context, 16_384),
                precision=next(precisions),
                kv_cache=next(caches),
            )
            found += _plan(next(hosts), model, service)
    return tuple(found)


def _plan(host: Host, model: Model, service: Service) -> list[Plan]:
    try:
        return [decide(host=host, model=model, service=service, port=8000)]
    except SelfhostError:
        return []


def _model(row: CatalogRow) -> Model:
    return a_model(
        row.id,
        geometry=Known(row.geometry, "catalog"),
        context_native=Known(row.context, "catalog"),
        params_b=Known(row.params_b, "catalog"),
        weights_bytes=Known(int(row.params_b * 2e9), "catalog"),
    )
