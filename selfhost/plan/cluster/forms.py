"""The modes and precisions in which the same model can be served on this card, as what each adds to the arguments.

Each is decided like the plan itself, with one wish changed; what all have in common stands first on the command line.
"""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace

from selfhost.core.errors import SelfhostError
from selfhost.engines.planned import grouped
from selfhost.plan.passed_on import PassedOn
from selfhost.shapes.cluster import Form, Forms
from selfhost.shapes.plan import Plan, ReasoningPlan, Verdict
from selfhost.shapes.service import ReasoningAsk, ReasoningMode, Service

Again = Callable[[Service], Plan]
Flags = dict[str, tuple[str, ...]]
"""By name, in the order of the command line."""
_WEIGHTS = ("bf16", "fp8", "fp8_block")
_KV = ("auto", "bf16", "fp8")
_EFFORTS = ("low", "medium", "high")
_OWN_REASONING = ("--reasoning-parser", "--default-chat-template-kwargs", "--reasoning-config")


@dataclass(frozen=True, slots=True)
class _Way:
    name: str
    flags: Flags
    env: Mapping[str, str]
    plan: Plan


def with_forms(plan: Plan, *, service: Service, passed: PassedOn, again: Again) -> Plan:
    """The plan with its command line in parts. The order of the arguments changes, and nothing else."""
    if plan.cluster is None:
        return plan
    forms = _forms(plan, service=service, passed=passed, again=again)
    return replace(plan, cluster=replace(plan.cluster, forms=forms), argv=forms.argv)


def _forms(plan: Plan, *, service: Service, passed: PassedOn, again: Again) -> Forms:
    asked = replace(service, context=plan.context, concurrency=plan.concurrency)
    base = _way(mode_name(plan.reasoning), plan, passed)
    modes = _modes(base, asked, passed, again)
    weights = [replace_name(base, plan.weights_precision), *_weights(plan, asked, passed, again)]
    kv = [replace_name(base, kv_name(plan.kv_precision)), *_kv(plan, asked, passed, again)]
    of_modes = _varying(modes)
    of_weights = _varying(weights) - of_modes
    of_kv = _varying(kv)
    if of_kv & (of_weights | of_modes):  # sizes that both move: two such values cannot be combined
        kv, of_kv = kv[:1], set()
    env = _varying_env(modes)
    return Forms(
        args=_words(base.flags, lambda name: name not in of_modes | of_weights | of_kv),
        env={name: value for name, value in base.env.items() if name not in env},
        modes=tuple(_mode(way, of_modes, env) for way in modes),
        weights=tuple(Form(name=way.name, args=_words(way.flags, of_weights.__contains__)) for way in weights),
        kv=tuple(Form(name=way.name, args=_words(way.flags, of_kv.__contains__)) for way in kv),
        extra=passed.words,
    )


def mode_name(reasoning: ReasoningPlan) -> str:
    """As `--reasoning` takes it; `off` for a model that does not think."""
    if reasoning.budget_tokens is not None:
        return f"budget={reasoning.budget_tokens}"
    return f"effort={reasoning.effort}" if reasoning.effort else reasoning.mode.value


def kv_name(kv: str) -> str:
    return kv or "auto"


def _mode(way: _Way, names: set[str], env: set[str]) -> Form:
    reasoning = way.plan.reasoning
    return Form(
        name=way.name,
        args=_words(way.flags, names.__contains__),
        env={name: value for name, value in way.env.items() if name in env},
        request=dict(reasoning.client_extras),
        thinks=reasoning.can_think and reasoning.mode is not ReasoningMode.OFF,
    )


def _modes(base: _Way, service: Service, passed: PassedOn, again: Again) -> list[_Way]:
    if not base.plan.reasoning.can_think or any(name in passed.flags for name in _OWN_REASONING):
        return [base]
    asks = [
        ReasoningAsk(mode=ReasoningMode.ON),
        ReasoningAsk(mode=ReasoningMode.OFF),
        *(ReasoningAsk(mode=ReasoningMode.EFFORT, effort=level) for level in _EFFORTS),
    ]
    found = [base]
    for ask in asks:
        if str(ask) not in {way.name for way in found}:
            found += _tried(str(ask), replace(service, reasoning=ask), passed, again)
    return found


def _weights(plan: Plan, service: Service, passed: PassedOn, again: Again) -> list[_Way]:
    if plan.verdict is not Verdict.FITS or {"--dtype", "--quantization"} & passed.flags.keys():
        return []
    found: list[_Way] = []
    for name in _WEIGHTS:
        for way in _tried(name, replace(service, precision=name), passed, again):
            same = way.plan.weights_precision in (
                plan.weights_precision,
                *(one.plan.weights_precision for one in found),
            )
            if not same and _serves_alike(way.plan, plan):
                found.append(way)
    return found


def _kv(plan: Plan, service: Service, passed: PassedOn, again: Again) -> list[_Way]:
    if plan.verdict is not Verdict.FITS or "--kv-cache-dtype" in passed.flags:
        return []
    mine = replace(service, precision=plan.weights_precision) if plan.weights_precision in _WEIGHTS else service
    found: list[_Way] = []
    for name in _KV:
        if name == kv_name(plan.kv_precision):
            continue
        ways = _tried(name, replace(mine, kv_cache=name), passed, again)
        same = [way for way in ways if way.plan.weights_precision == plan.weights_precision]
        found += [way for way in same if _serves_alike(way.plan, plan)]
    return found


def _serves_alike(way: Plan, plan: Plan) -> bool:
    return way.verdict is Verdict.FITS and way.parallel == plan.parallel and way.build == plan.build


def _tried(name: str, service: Service, passed: PassedOn, again: Again) -> list[_Way]:
    """Nothing for what this model, engine or card cannot do."""
    try:
        return [_way(name, again(service), passed)]
    except SelfhostError:
        return []


def _way(name: str, plan: Plan, passed: PassedOn) -> _Way:
    own = plan.argv[: len(plan.argv) - len(passed.words)] if passed.words else plan.argv
    flags: Flags = {}
    for words in grouped(own):
        flags[words[0]] = (*flags.get(words[0], ()), *words)
    return _Way(name, flags, plan.env, plan)


def replace_name(way: _Way, name: str) -> _Way:
    return _Way(name, way.flags, way.env, way.plan)


def _varying(ways: Iterable[_Way]) -> set[str]:
    """Flags that not all of them have, or not with the same value."""
    ways = list(ways)
    names = {name for way in ways for name in way.flags}
    return {name for name in names if len({way.flags.get(name) for way in ways}) > 1}


def _varying_env(ways: Iterable[_Way]) -> set[str]:
    ways = list(ways)
    names = {name for way in ways for name in way.env}
    return {name for name in names if len({way.env.get(name) for way in ways}) > 1}


def _words(flags: Flags, wanted: Callable[[str], bool]) -> tuple[str, ...]:
    return tuple(word for name, words in flags.items() if wanted(name) for word in words)
