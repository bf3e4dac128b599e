"""From one row of a log to the question that the planner is asked, and to what was seen."""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from selfhost.hosts.cards import Card, named
from selfhost.models.catalog import CatalogRow, relative_of
from selfhost.plan.memory.question import Question, Room, Spread, Weights
from selfhost.shapes.host import Vendor
from selfhost.shapes.units import GIB

BACKENDS = {Vendor.AMD: "rocm", Vendor.INTEL: "xpu"}
SCHEMES = (
    ("nvfp4", "nvfp4"), ("mxfp4", "mxfp4"), ("fp8 (block", "fp8_block"), ("block", "fp8_block"), ("fp8", "fp8"),
    ("int8", "int8"), ("w8a8", "int8"), ("awq", "awq"), ("w4a16", "gptq"), ("gptq", "gptq"), ("int4", "gptq"),
    ("fp32", "fp32"), ("fp16", "fp16"), ("bf16", "bf16"),
)  # fmt: skip
DEFAULTS = re.compile(r"\bdefaults?\b(?! since)", re.IGNORECASE)
"""A share that is not stated may have been passed, unless the row says that nothing was."""
SHARED = re.compile(r"\bshared card|other (process|tenant|program)", re.IGNORECASE)


@dataclass(frozen=True, slots=True, kw_only=True)
class Case:
    """A row, read. Sizes in bytes."""

    id: str
    question: Question | None = None
    why_not: str = ""
    notes: str = ""
    kv_bytes: float | None = None
    tokens: int | None = None
    kv_said: bool = True
    """Which form the KV cache has."""
    batch_said: bool = True
    needed: float | None = None
    longest: int | None = None
    oom: bool | None = None
    weights_seen: bool = False
    share_said: bool = False
    card_said: bool = False
    has_outcome: bool = False


def read(row: Mapping[str, Any]) -> Case:
    name = str(row.get("id", "?"))
    engine, model = str(row.get("engine", "")).lower(), str(row.get("model", ""))
    if engine not in ("vllm", "sglang"):
        return Case(id=name, why_not=f"engine {engine or 'not named'}")
    family = None if not model or "?" in model else relative_of(model)
    if family is None:
        return Case(id=name, why_not=f"geometry of {model or 'an unnamed model'} is not known")
    seen: Mapping[str, Any] = row.get("observed") or {}
    text = f"{row.get('other_flags') or ''}; {row.get('notes') or ''}"
    question = asked(row, engine, family, text)
    oom = seen.get("oom")
    kv = _number(seen.get("kv_cache_gib"))
    weights_known = question.weights.resident is not None or bool(question.weights.parameters)
    share_said = question.utilization is not None or bool(DEFAULTS.search(str(row.get("other_flags") or "")))
    return Case(
        id=name,
        question=question,
        notes=str(row.get("notes") or ""),
        kv_bytes=kv * GIB if kv is not None else None,
        tokens=_whole(seen.get("kv_tokens")),
        kv_said=row.get("kv_cache_dtype") is not None,
        batch_said=question.batch_tokens is not None,
        needed=_times_gib(seen.get("kv_needed_gib")),
        longest=_whole(seen.get("estimated_max_len")),
        oom=oom if isinstance(oom, bool) else None,
        weights_seen=question.weights.resident is not None,
        share_said=share_said,
        card_said=question.room.total > 0 and not SHARED.search(text),
        has_outcome=isinstance(oom, bool) and weights_known and share_said and question.room.total > 0,
    )


def asked(row: Mapping[str, Any], engine: str, family: CatalogRow, text: str) -> Question:
    card = named(str(row.get("gpu") or ""))
    seen: Mapping[str, Any] = row.get("observed") or {}
    context = _whole(row.get("max_model_len"))
    quantized = str(row.get("weight_quant") or "")
    weights = _number(seen.get("weights_gib"))
    scheme = next((scheme for word, scheme in SCHEMES if word in quantized.lower()), None)
    return Question(
        engine=engine,
        version=str(row.get("engine_version") or ""),
        backend=BACKENDS.get(card.vendor, "cuda") if card else "cuda",
        geometry=family.geometry,
        weights=Weights(
            resident=int(weights * GIB) if weights else None,
            parameters=family.params_b * 1e9 if scheme else None,
            scheme=scheme or "bf16",
        ),
        room=_room(row, card),
        spread=_spread(row, text),
        kv=str(row.get("kv_cache_dtype") or "auto"),
        computed=_computed(quantized, text),
        context=None if engine == "sglang" else context or family.context,  # SGLang's pools don't depend on it
        native=family.context if engine == "vllm" else None,
        utilization=_number(row.get("gpu_memory_utilization")),
        max_seqs=_whole(row.get("max_num_seqs")),
        batch_tokens=_batch(engine, text),
        kv_bytes=_count(r"kv[-_]cache[-_]memory(?:[-_]bytes)?[= ]+(\d{6,})", text),
        block_size=_count(r"block[_ -]size[= ]+(\d+)|page size (\d+)", text),
        eager=bool(re.search(r"enforce[_-]eager(?!\s*=\s*False)|disable-cuda-graph\b", text)),
        spec_tokens=_speculated(text),
        draft_layers=int(bool(re.search(r"\bMTP\b", text)) and not re.search(r"shares? KV", text)),
        prefix_caching=_prefixes(text),
        multimodal=not re.search(r"language[-_]model[-_]only|skip[-_]mm[-_]profiling", text),
        mamba_slots=_count(r"max-mamba-cache-size[= ]+(\d+)", text),
        llm_class=bool(re.search(r"\bLLM class", text)),
    )


def _room(row: Mapping[str, Any], card: Card | None) -> Room:
    stated = _number(row.get("gpu_mem_gib"))
    sizes = [size for size in (int(stated * GIB) if stated else 0, card.memory if card else 0) if size]
    return Room(
        name=str(row.get("gpu") or ""),
        total=min(sizes, default=0),  # some rows state the size on the box
        arch=card.arch if card else "",
        unified=card.unified if card else False,
        linked=card.linked if card else False,
    )


def _spread(row: Mapping[str, Any], text: str) -> Spread:
    tensor = _whole(row.get("tp")) or 1
    stages = _whole(row.get("pp")) or 1
    attention = _count(r"DP[- ]attention\D{0,3}(\d+)|enable-dp-attention.*?-dp(?:-size)?[= ](\d+)", text) or 1
    return Spread(
        tensor=tensor,
        pipeline=stages,
        data=_copies(row, text, tensor * stages),
        expert=bool(re.search(r"expert[- _]parallel|\bEP\b", text)),
        attention_data=attention,
    )


def _copies(row: Mapping[str, Any], text: str, ranks: int) -> int:
    """Replicas of vLLM: as stated, or as many as the cards that are left over."""
    said = _count(r"(?:-dp|data[-_]parallel[-_]size|\bDP)\s*=?\s*(\d+)(?! *attention)", text)
    if row.get("engine") != "vllm":
        return 1
    return said or max(1, (_whole(row.get("gpu_count_used")) or 1) // ranks)


def _computed(quantized: str, text: str) -> str:
    if re.search(r"dtype[= ]+(torch\.)?float32|fp32", f"{text} {quantized}"):
        return "fp32"
    return "fp16" if re.search(r"dtype[= ]+(torch\.)?(float16|half)", text) else "bf16"


def _batch(engine: str, text: str) -> int | None:
    if engine == "sglang":
        return _count(r"chunked[_-]prefill(?:[_-]size)?[= ]+(\d+)", text)
    return _count(r"max[_-]num[_-]batched[_-]tokens[= ]+(\d+)", text)


def _speculated(text: str) -> int:
    """Draft tokens; one where only the method is named."""
    said = _count(r"num_speculative_tokens\D{1,4}(\d+)|MTP[ (=]*(?:n|k)?[ =]*(\d+)", text)
    return said or int(bool(re.search(r"\bMTP\b|eagle|speculat", text, re.IGNORECASE)))


def _prefixes(text: str) -> bool | None:
    if re.search(r"prefix[_ -]caching\s*(=\s*False|off|disabled)|no-enable-prefix-caching", text, re.IGNORECASE):
        return False
    return True if re.search(r"prefix[_ -]caching", text, re.IGNORECASE) else None


def _count(pattern: str, text: str) -> int | None:
    found = re.search(pattern, text)
    return int(next(group for group in found.groups() if group)) if found else None


def _number(value: object) -> float | None:
    return float(value) if isinstance(value, (int, float)) and not isinstance(value, bool) else None


def _whole(value: object) -> int | None:
    number = _number(value)
    return int(number) if number else None


def _times_gib(value: object) -> float | None:
    number = _number(value)
    return number * GIB if number else None
