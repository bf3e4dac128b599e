"""Over how many devices the model is spread, and how it is cut."""

from collections.abc import Iterator
from dataclasses import replace

from selfhost.core.errors import InputError
from selfhost.engines.names import shown
from selfhost.plan.command_line import command_line
from selfhost.plan.devices import Devices
from selfhost.plan.memory.question import Spread
from selfhost.plan.parallel_cut import Cut, cut, divides_experts
from selfhost.plan.parallel_link import join_of
from selfhost.plan.passed_on import PassedOn
from selfhost.plan.precision_form import Precision
from selfhost.shapes.geometry import Geometry
from selfhost.shapes.host import Host, Known
from selfhost.shapes.model import Model
from selfhost.shapes.plan import Decision, Evidence
from selfhost.shapes.service import Service

_NAMES = {
    "tensor": ("--tensor-parallel-size", "--tp-size"),
    "pipeline": ("--pipeline-parallel-size", "--pp-size"),
    "data": ("--data-parallel-size", "--dp-size"),
}
"""How the engines' flags spell each size; vLLM's name is an alias on SGLang."""
_EXPERT = ("--enable-expert-parallel", "--ep-size", "--expert-parallel-size")
_ATTENTION_DATA = ("--attn-dp-size",)
_CHANGES = (*(name for names in _NAMES.values() for name in names), *_EXPERT, *_ATTENTION_DATA)


def choose_parallel(
    *, model: Model, devices: Devices, precision: Precision, engine: str, service: Service, passed: PassedOn
) -> tuple[Spread, ...]:
    """Ways to use every card, best first. Raises InputError for a tensor size of the user's that cannot be cut."""
    count = max(1, len(devices.cards))
    shape = model.geometry.value if isinstance(model.geometry, Known) else None
    asked = _asked(passed)
    if asked is not None:
        _refuse_uncut(asked, shape, model=model, engine=engine, precision=precision, service=service)
        return (asked,)
    if count == 1:
        return (Spread(),)
    if shape is None:
        return Spread(tensor=count), Spread(pipeline=count), Spread(data=count)
    return tuple(dict.fromkeys(_ways(shape, count, engine=engine, precision=precision)))


def _ways(shape: Geometry, count: int, *, engine: str, precision: Precision) -> Iterator[Spread]:
    """Every layer over every card where it can be cut, then layers in a row, then whole copies."""
    for tensor in sorted((t for t in range(2, count + 1) if count % t == 0), reverse=True):
        made = cut(shape, tensor, engine=engine, precision=precision)
        stages = count // tensor
        if stages > shape.layers:
            continue
        if made.possible:
            yield Spread(tensor=tensor, pipeline=stages)
            if stages == 1:
                yield from _whole_caches(shape, tensor, engine=engine)
        elif not made.dense and divides_experts(shape, tensor, engine=engine):
            yield Spread(tensor=tensor, pipeline=stages, expert=True)
    if count <= shape.layers:
        yield Spread(pipeline=count)
    yield Spread(data=count)


def _whole_caches(shape: Geometry, tensor: int, *, engine: str) -> Iterator[Spread]:
    """Latent attention keeps its cache whole on every rank: requests, not heads, are dealt out then."""
    if shape.latent is None:
        return
    if engine == "sglang":
        yield Spread(tensor=tensor, attention_data=tensor, expert=divides_experts(shape, tensor, engine=engine))
    elif shape.experts is not None:
        yield Spread(data=tensor, expert=True)


def _asked(passed: PassedOn) -> Spread | None:
    """What the user's own engine flags say; None where they say nothing of it."""
    if not any(name in passed.flags for name in _CHANGES):
        return None
    sizes = {
        field: next((found for name in names if (found := passed.count(name))), 1) for field, names in _NAMES.items()
    }
    expert = any(passed.text(name) not in (None, "false", "1") for name in _EXPERT)
    attention = next((found for name in _ATTENTION_DATA if (found := passed.count(name))), 1)
    if passed.text("--enable-dp-attention") == "true":  # its --dp-size counts inside the tensor size
        attention, sizes["data"] = sizes["data"], 1
    return Spread(**sizes, expert=expert, attention_data=attention)


def _refuse_uncut(
    asked: Spread, shape: Geometry | None, *, model: Model, engine: str, precision: Precision, service: Service
) -> None:
    if shape is None:
        return
    made = cut(shape, asked.tensor, engine=engine, precision=precision)
    against = made.dense or ("" if asked.expert else made.experts)
    if not against:
        return
    sizes = [t for t in range(2, asked.tensor + 1) if cut(shape, t, engine=engine, precision=precision).possible]
    fix = [f"a size that divides it: {', '.join(map(str, sizes))}"] if sizes else []
    if not made.dense and divides_experts(shape, asked.tensor, engine=engine):
        flag = "--enable-expert-parallel" if engine == "vllm" else f"--ep-size {asked.tensor}"
        fix.append(f"or whole experts on each card: add `{flag}` behind `--`")
    bare = command_line("up", replace(service, engine_args=()))
    fix.append(f"or leave it out, and selfhost spreads the model:\n{bare}")
    raise InputError(
        f"{model.id} cannot be cut into {asked.tensor} parts: {against}",
        why=f"{shown(engine)} cuts every layer evenly; it would stop at the start.",
        fix=[fix[0].removeprefix("or "), *fix[1:]],
        id="PL011",
    )


def parallel_decision(
    devices: Devices,
    *,
    passed: PassedOn,
    spread: Spread | None = None,
    host: Host | None = None,
    model: Model | None = None,
    precision: Precision | None = None,
    engine: str = "vllm",
) -> Decision:
    """How the chosen spread uses the cards; without one every card holds a part of every layer."""
    count = max(1, len(devices.cards))
    spread = spread or Spread(tensor=count)
    flag = next((name for name in _CHANGES if name in passed.flags), "")
    return Decision(
        field="parallelism",
        value=in_words(spread),
        reason="; ".join(_reasons(spread, devices, host=host, model=model, precision=precision, engine=engine)),
        source="https://docs.vllm.ai/en/latest/serving/parallelism_scaling.html",
        evidence=Evidence.READ_IN_CODE,
        by=passed.by(flag) if flag else "selfhost",
    )


def in_words(spread: Spread) -> str:
    """`none`, `tensor parallel 2`, `tensor parallel 2, pipeline parallel 2, whole experts`."""
    parts = [
        f"{name} parallel {size}"
        for name, size in (("tensor", spread.tensor), ("pipeline", spread.pipeline), ("data", spread.data))
        if size > 1
    ]
    parts += ["whole experts"] if spread.expert else []
    parts += [f"attention data parallel {spread.attention_data}"] if spread.attention_data > 1 else []
    return ", ".join(parts) or "none"


def _reasons(
    spread: Spread, devices: Devices, *, host: Host | None, model: Model | None, precision: Precision | None,
    engine: str,
) -> Iterator[str]:  # fmt: skip
    if spread.ranks == 1:
        yield "one device is allocated"
        return
    if spread.tensor > 1:
        yield "each device holds a part of every layer"
    if spread.pipeline > 1:
        yield "layers stand in a row, and a request passes from one device to the next"
    if spread.data > 1:
        yield "each device holds a whole copy and its own requests"
    shape = model.geometry.value if model is not None and isinstance(model.geometry, Known) else None
    if shape is not None:
        made = cut(shape, spread.tensor, engine=engine, precision=precision) if precision is not None else Cut()
        yield from _of_shape(spread, shape, made)
    if spread.tensor > 1 or spread.pipeline > 1 or spread.expert:
        yield join_of(devices, host).words


def _of_shape(spread: Spread, shape: Geometry, made: Cut) -> Iterator[str]:
    if made.note:
        yield made.note
    if spread.expert and made.experts:
        yield f"whole experts on each device, because {made.experts}"
    whole_cache = spread.tensor > 1 and spread.attention_data == 1 and shape.latent is not None
    if whole_cache:
        yield "its latent KV cache is whole on every device: data parallel attention would deal requests out instead"
    kv_heads = shape.full_kv_heads or shape.kv_heads
    if spread.tensor > kv_heads > 0 and shape.latent is None:
        yield f"its {kv_heads} KV heads are held {spread.tensor // kv_heads} times"
