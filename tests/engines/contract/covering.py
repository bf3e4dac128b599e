"""Command lines that cover what selfhost writes: each family, mode, form of numbers and cut, on either engine."""

from collections.abc import Iterator, Mapping, Sequence
from itertools import cycle

from selfhost.engines.base import engine
from selfhost.engines.launch import Launch
from selfhost.models.families import families
from selfhost.shapes.model import Family
from selfhost.shapes.plan import Parallel, ReasoningPlan
from selfhost.shapes.service import ReasoningMode
from tests.engines.launches import launch

ONE = {"backend": "cuda", "devices": ("GPU-a",), "kv_cache_bytes": 0}
TWO = {"backend": "cuda", "devices": ("GPU-a", "GPU-b"), "kv_cache_bytes": 0}
EIGHT = {"backend": "cuda", "devices": tuple(f"GPU-{number}" for number in range(8)), "kv_cache_bytes": 0}
PLACES: dict[str, Sequence[Mapping[str, object]]] = {"vllm": ({}, ONE, TWO), "sglang": (ONE, TWO)}

INSIDE = {"in_image": True, "model_path": "/model/snapshots/0123abcd", "address": "0.0.0.0", "port": 8000}
"""For the entrypoint of the engine's image."""

WEIGHTS = {
    "vllm": ("bf16", "fp16", "fp32", "fp8", "fp8_per_tensor", "fp8_per_block", "checkpoint"),
    "sglang": ("bf16", "fp16", "fp32", "fp8", "checkpoint"),
}
KV = {
    "vllm": ("auto", "bf16", "fp16", "fp8", "fp8_e4m3", "fp8_e5m2", "fp8_per_token_head", "int8_per_token_head"),
    "sglang": ("auto", "bf16", "fp16", "fp8", "fp8_e4m3", "fp8_e5m2", "mxfp8", "nvfp4"),
}
FURTHER = {
    "vllm": (
        (),
        ("--linear-backend", "triton"),
        ("--linear-backend", "marlin"),
        ("--kv-cache-dtype-skip-layers", "0", "sliding_window"),
    ),
    "sglang": ((), ("--fp8-gemm-backend", "triton")),
}
CUTS = (
    None,
    Parallel(tensor=8),
    Parallel(tensor=4, pipeline=2),
    Parallel(tensor=2, data=4),
    Parallel(tensor=8, expert=True),
)
TEMPLATES: tuple[dict[str, object], ...] = (
    {"enable_thinking": False, "thinking": False},
    {"enable_thinking": True},
    {"reasoning_effort": "high"},
    {"thinking_budget": 512},
    {},
)


def lines(name: str) -> list[list[str]]:
    """For one engine. Every value of every part is in some line; not every combination is."""
    return [list(engine(name).argv(each)) for each in launches(name)]


def launches(name: str) -> Iterator[Launch]:
    kv, further, templates = cycle(KV[name]), cycle(FURTHER[name]), cycle(TEMPLATES)
    weights = cycle(WEIGHTS[name])
    for place, (_, family) in zip(cycle(PLACES[name]), families(), strict=False):
        for _ in range(2):
            yield launch(
                **place,
                weights_precision=next(weights),
                kv_precision=next(kv),
                quantization_flags=next(further),
                reasoning=_mode(name, family, next(templates)),
                tool_parser=family.tool_parser.get(name, ""),
                trust_remote_code=len(family.id) % 2 == 0,
            )
    for cut in CUTS:
        yield launch(**EIGHT, parallel=cut, gpu_memory_utilization=0.88)
    for domains in (("none.invalid",), ("images.example.org", "192.0.2.7")):
        yield launch(**ONE, media_domains=domains)
    for place in PLACES[name]:
        yield launch(**place, **INSIDE)
    yield launch(**{**ONE, "kv_cache_bytes": 40 * 2**30, "kv_cache_tokens": 300_000})


def _mode(name: str, family: Family, template: dict[str, object]) -> ReasoningPlan:
    parser = family.reasoning_parser.get(name, "")
    strict = ("--enable-strict-thinking",) if name == "sglang" and family.budget.get(name) == "strict" else ()
    return ReasoningPlan(
        mode=ReasoningMode.ON if parser else ReasoningMode.OFF,
        parser=parser,
        template_defaults=template if parser else {},
        server_flags=strict,
    )
