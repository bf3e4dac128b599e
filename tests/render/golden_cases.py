"""Which plans have golden files: machines of every kind, and reasoning modes with both engines."""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path

from selfhost.core.errors import SelfhostError
from selfhost.core.recorded import Recorded
from selfhost.hosts.detect import detect, with_links
from selfhost.models.catalog import by_alias
from selfhost.models.listed import listed
from selfhost.plan.decide import decide
from selfhost.plan.reasoning import parse
from selfhost.render.manifests.chart import NAME
from selfhost.render.targets import CLUSTER, TARGETS, render
from selfhost.shapes.host import Host
from selfhost.shapes.place import Place
from selfhost.shapes.plan import Plan
from tests.fakes.planning import a_host, a_service

TESTS = Path(__file__).parent.parent
GOLDEN = TESTS / "golden"
RUNTIMES = {
    "compose": "docker", "docker": "docker", "podman": "podman", "quadlet": "quadlet", "process": "process",
    "helm": "kubernetes", "kubernetes": "kubernetes",
}  # fmt: skip
CPU = "cpu"
HOSTS = (
    CPU, "rtx3060", "rtx4090", "rtx5090", "l40s", "h100", "a100-mig-slice", "two-rtx", "rx7900xtx", "amd-mi300x",
    "arc-b580", "dgx-spark", "jetson-thor", "wsl2-rtx", "strix-halo",
)  # fmt: skip
IN_A_CLUSTER = (CPU, "rtx4090", "h100", "a100-mig-slice", "two-rtx", "amd-mi300x", "arc-b580", "dgx-spark")
"""A cluster's files do not depend on how a machine's container engine hands its cards in."""
THINKS, SMALL, EFFORT, NEVER = "qwen3-4b", "qwen3-0.6b", "gpt-oss-20b", "smollm2-135m"
MODES = {
    "on": (THINKS, "on"),
    "off": (THINKS, "off"),
    "budget": (THINKS, "budget=2048"),
    "effort": (EFFORT, "effort=low"),
    "no-reasoning-model": ("qwen2.5-7b", ""),
}
PLACE = Place(
    folder="/srv/selfhost/it",
    key_file="/srv/selfhost/it/key",
    env_file="/srv/selfhost/it/engine.env",
    python="/srv/selfhost/engine/bin/python",
)


@dataclass(frozen=True, slots=True)
class Case:
    """`folder` below tests/golden."""

    folder: str
    host: str
    alias: str
    target: str
    engine: str = ""
    reasoning: str = ""

    def __str__(self) -> str:
        return f"{self.folder}/{self.target}"


def cases() -> list[Case]:
    return list(_cases())


def _cases() -> Iterator[Case]:
    for target in TARGETS:
        for host in HOSTS if target not in CLUSTER else IN_A_CLUSTER:
            yield Case(host, host, SMALL if host == CPU else THINKS, target)
        for mode, (alias, reasoning) in MODES.items():
            for engine in ("vllm", "sglang"):
                yield Case(f"reasoning-{mode}-{engine}", "h100", alias, target, engine, reasoning)


@cache
def host_of(name: str) -> Host:
    if name == CPU:
        return a_host(gib=64)
    seen = Recorded.load(TESTS / "snapshots" / f"{name}.json")
    return with_links(detect(seen, wide=True), seen)


@cache
def plan_of(case: Case) -> Plan:
    """Raises SelfhostError where such a plan is refused."""
    wish = {"engine": case.engine} if case.engine else {}
    service = a_service(case.alias, runtime=RUNTIMES[case.target], **wish)
    if case.reasoning:
        service = replace(service, reasoning=parse(case.reasoning))
    entry = by_alias(case.alias)
    assert entry is not None
    model = replace(listed(entry), path=f"/srv/models/{case.alias}")
    return decide(host=host_of(case.host), model=model, service=service, port=8000)


def place_of(plan: Plan) -> Place:
    keyless = plan.cluster is not None or plan.build.engine != "vllm"
    return replace(PLACE, env_file="", key_file="") if keyless else PLACE


def files_of(case: Case) -> dict[str, str]:
    """What stands in the golden folder: the files, or the words in which it is refused. A chart is in templates/."""
    try:
        plan = plan_of(case)
        files = render(case.target, plan, place_of(plan)).files
        return {path: text for path, text in files.items() if not path.startswith(f"{NAME}/")}
    except SelfhostError as error:
        fixes = "".join(f"\n→ {fix}" for fix in error.fix)
        return {"REFUSED.txt": f"{error.id}: {error.what}\n{error.why}{fixes}\n"}


def rendered() -> list[Case]:
    """Those that are not refused, by what lies in the golden folders."""
    return [case for case in cases() if not (GOLDEN / str(case) / "REFUSED.txt").exists()]
