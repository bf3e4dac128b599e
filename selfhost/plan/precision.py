"""Which precision of the weights, chosen after the card: candidates in order of preference."""

from dataclasses import replace

from selfhost.core.errors import InputError
from selfhost.models.checkpoints import Checkpoint, named, published
from selfhost.plan import precision_refusals as refusals
from selfhost.plan.archs import archs_of
from selfhost.plan.command_line import command_line
from selfhost.plan.devices import Devices
from selfhost.plan.fp8 import MADE_AS, RANK, Form, Native, Support, known_version, made_while_loading, support
from selfhost.plan.kv_precision import KvPrecision, choose_kv
from selfhost.plan.passed_on import PassedOn
from selfhost.plan.precision_form import CHECKPOINT, MADE, Precision, fp8, is_sparse, of_checkpoint
from selfhost.plan.precision_words import precision_decisions
from selfhost.shapes.host import Known
from selfhost.shapes.model import Model
from selfhost.shapes.precision import PLAIN, short_name
from selfhost.shapes.service import Service

__all__ = ["CHECKPOINT", "Precision", "precision_decisions", "precisions"]

WEIGHTS = ("auto", *PLAIN, "fp8", "fp8_block", "int8", "int4", "awq", "gptq", "nvfp4", "mxfp4")
_FORMS = {"fp8_block": Form.BLOCK, "per channel": Form.CHANNEL, "per tensor": Form.TENSOR, "block": Form.BLOCK}


def precisions(
    *, model: Model, service: Service, devices: Devices, engine: str, version: str, passed: PassedOn
) -> tuple[Precision, ...]:
    """Candidates, best first: the first that fits the context asked for is taken, and if none does, the smallest.

    Raises InputError for a precision that nobody knows, that this checkpoint cannot take, or that this card cannot
    compute.
    """
    own = model.dtype.value if isinstance(model.dtype, Known) else ""
    asked = _known(service)
    found = _Chooser(
        model=model, service=service, devices=devices, engine=engine, version=version, passed=passed, own=own
    )
    if "--quantization" in passed.flags or "--dtype" in passed.flags:
        return (found.passed_on(),)
    if own and own not in PLAIN:
        return (found.quantized(asked),)
    return found.automatic() if asked == "auto" else (found.asked(asked),)


def _known(service: Service) -> str:
    value = short_name(service.precision or "auto")
    if value in WEIGHTS:
        return value
    raise InputError(
        f"`--precision {service.precision}` is not a precision that selfhost knows",
        why=f"Known are {', '.join(WEIGHTS)}. `auto` takes FP8 where the card computes it, else what was published.",
        fix=(f"leave it to selfhost:\n{command_line('up', service, change={'precision': None})}",),
        id="PL005",
    )


class _Chooser:
    """One question: this model, on these devices, with this engine."""

    def __init__(
        self, *, model: Model, service: Service, devices: Devices, engine: str, version: str, passed: PassedOn, own: str
    ) -> None:
        self.model, self.service, self.devices, self.passed = model, service, devices, passed
        self.engine, self.version, self.own = engine, version, own

    def passed_on(self) -> Precision:
        """What the user's own engine flags make of it; the engine judges them."""
        method = self.passed.flags.get("--quantization", "")
        named = short_name(self.passed.flags.get("--dtype", ""))
        if "fp8" in method and self.own in (*PLAIN, ""):
            form = MADE.get(method, made_while_loading(engine=self.engine, backend=self.devices.backend, arch=""))
            return self._fp8(form or Form.CHANNEL)
        plain = named if named in PLAIN else self.own if self.own in PLAIN else CHECKPOINT
        return self._plain(plain)

    def quantized(self, asked: str) -> Precision:
        """As published; anything else is another repository."""
        form = self._published_form()
        if asked not in ("auto", self.own, self.model.scheme) and not (asked == "fp8_block" and form is Form.BLOCK):
            other = _published(self.model, asked)
            raise refusals.other_than_published(self.model, self.service, asked, own=self.own, checkpoint=other)
        kv = self._kv("bf16")
        if not self.own.startswith("fp8"):
            return self._of_checkpoint(kv)
        states = self._supports(form, while_loading=False) if form else self._any_form()
        worst = max(states, key=lambda one: RANK.index(one.native))
        if form is None and len({one.native for one in states}) > 1:
            worst = replace(worst, native=Native.UNPROVEN, why=self._depends(states), logs=(), switch="")
        if worst.native is Native.REFUSED:
            raise self._card_cannot(worst)
        made = fp8(CHECKPOINT, own=self.own, model=self.model, kv=kv, found=worst, backend=self.devices.backend)
        same = (1.0, 1.0)
        return replace(
            made, stored=self.model.scheme, form=form, moe="", decode=same, prefill=same, unverified=self._unverified()
        )  # fmt: skip

    def _card_cannot(self, found: Support) -> InputError:
        """The checkpoint itself is of a form that these cards do not take."""
        other = next((one for name in ("bf16", "int4") if (one := _published(self.model, name))), None)
        return refusals.card_cannot(
            self.model, self.service, found, devices=self.devices, published=self.own, checkpoint=other
        )  # fmt: skip

    def _published_form(self) -> Form | None:
        return _FORMS.get(self.own) or _FORMS.get(self.model.quant_form)

    def _any_form(self) -> tuple[Support, ...]:
        return tuple(one for form in Form for one in self._supports(form, while_loading=False))

    @staticmethod
    def _depends(states: tuple[Support, ...]) -> str:
        said = dict.fromkeys(f"{one.form.words} {one.native.value}" for one in states)
        return f"over what its scales reach is not known: {', '.join(said)}"

    def _of_checkpoint(self, kv: KvPrecision) -> Precision:
        states = [
            of_checkpoint(self.own, engine=self.engine, backend=self.devices.backend, arch=arch)
            for arch in archs_of(self.devices)
        ]
        native, why, source = max(states, key=lambda one: RANK.index(one[0]))
        if native is Native.REFUSED:
            raise self._card_cannot(Support(form=Form.CHANNEL, native=native, why=why, source=source))
        return Precision(
            weights=CHECKPOINT, kv=kv.name, own=self.own, stored=self.model.scheme, native=native, why=why,
            source=source, cache=kv,
        )  # fmt: skip

    def automatic(self) -> tuple[Precision, ...]:
        """FP8 where this card computes the form that would be made; the published numbers behind or before it."""
        published = self._plain(self._published())
        if not self.own or self.model.demonstration:
            return (published,)
        rounded = self._made()
        if rounded is None or rounded.native is Native.REFUSED:
            return (replace(published, alternatives=self._others(), note=self._of_fp8(rounded)),)
        published = replace(
            published, alternatives=self._others("fp8", state=rounded.native), note=self._of_fp8(rounded)
        )
        if rounded.native is Native.NATIVE:
            return (replace(rounded, alternatives=self._others(published.weights)), published)
        if rounded.native is Native.MEMORY_ONLY and self.devices.cards:
            behind = f"taken because {self._published().upper()} does not fit"
            note = "; ".join(part for part in (behind, rounded.note) if part)
            return (published, replace(rounded, alternatives=self._others(published.weights), note=note))
        return (published,)

    def asked(self, asked: str) -> Precision:
        if asked in PLAIN:
            if asked == "bf16" and _lacks_bf16(self.devices):
                raise refusals.no_bf16(self.model, self.service, self.devices)
            return replace(self._plain(asked), alternatives=self._others("auto"), note=self._of_fp8(self._made()))
        if asked not in ("fp8", "fp8_block"):
            raise refusals.not_made_here(self.model, self.service, asked, checkpoint=_published(self.model, asked))
        made = self._made(Form.BLOCK if asked == "fp8_block" else None)
        if made is None and asked == "fp8_block":
            checkpoint = _published(self.model, asked)
            raise refusals.not_made_here(self.model, self.service, asked, checkpoint=checkpoint)
        if made is None or made.native is Native.REFUSED:
            why = self._supports(Form.CHANNEL, while_loading=True)[0]
            raise refusals.card_cannot(
                self.model, self.service, made or why, devices=self.devices,
                checkpoint=_published(self.model, "int4"),
            )  # fmt: skip
        return replace(made, alternatives=self._others(self._published()))

    def _of_fp8(self, made: Precision | None) -> str:
        """What FP8 would be here, for a plan that does not take it."""
        if made is None or made.native is Native.REFUSED:
            return "FP8 is not possible here"
        form = f"FP8 {made.form.words}" if made.form else "FP8"
        if made.native is Native.NATIVE:
            return f"{form} is expected native here"
        if made.native is Native.MEMORY_ONLY:
            return f"{form} would be memory only here"
        return (
            f"{form} is unproven here, and not taken by itself until `--precision fp8` was started and its smoke passed"
        )

    def _made(self, form: Form | None = None) -> Precision | None:
        """FP8 made while loading, in the form that suits every card; None where no form is made."""
        backend = self.devices.backend
        made = {made_while_loading(engine=self.engine, backend=backend, arch=arch) for arch in archs_of(self.devices)}
        if None in made:
            return None
        if form is Form.BLOCK and self.engine == "sglang":  # its `fp8` makes one scale a channel, and no blocks
            return None
        return self._fp8(form or next((one for one in (Form.TENSOR, Form.BLOCK) if one in made), Form.CHANNEL))

    def _fp8(self, form: Form) -> Precision:
        worst = max(self._supports(form, while_loading=True), key=lambda one: RANK.index(one.native))
        kv = self._kv(self.own if self.own in PLAIN else "bf16")
        made = fp8(MADE_AS[form], own=self.own, model=self.model, kv=kv, found=worst, backend=self.devices.backend)
        return replace(made, unverified=self._unverified())

    def _unverified(self) -> str:
        """Said of an engine's version whose code nobody read; the processor's build has a version of its own."""
        read = known_version(self.engine)
        if not self.version or self.version == read or not self.devices.cards:
            return ""
        return f"unverified version: read in {read}, not in {self.version}"

    def _supports(self, form: Form, *, while_loading: bool) -> tuple[Support, ...]:
        """What the form is worth, per kind of card."""
        return tuple(
            support(
                engine=self.engine,
                backend=self.devices.backend,
                arch=arch,
                form=form,
                version=self.version,
                while_loading=while_loading,
                sparse=is_sparse(self.model),
                flags=self.passed.flags,
            )
            for arch in archs_of(self.devices)
        )

    def _plain(self, weights: str) -> Precision:
        computed = weights if weights in PLAIN else "bf16"
        kv = self._kv(computed)
        return Precision(weights=weights, kv=kv.name, own=self.own, cache=kv)

    def _kv(self, computed: str) -> KvPrecision:
        return choose_kv(
            model=self.model, service=self.service, devices=self.devices, engine=self.engine, passed=self.passed,
            computed=computed,
        )  # fmt: skip

    def _published(self) -> str:
        """The checkpoint's own numbers, as far as these devices compute them."""
        if self.model.demonstration and not self.devices.cards and self.own in ("bf16", "fp16"):
            return "fp32"  # its near ties are many and its weights small: it must not fail by rounding
        if self.own == "bf16" and _lacks_bf16(self.devices):
            return "fp16"
        return self.own if self.own in PLAIN else CHECKPOINT

    def _others(self, *own: str, state: Native | None = None) -> tuple[str, ...]:
        """Other precisions, and repositories that publish this model in one."""
        told = [f"{name} ({state.value})" if state and name == "fp8" else name for name in own]
        for name in ("fp8", "int4"):
            checkpoint = _published(self.model, name)
            if checkpoint is not None:
                told.append(f"{checkpoint.id} ({checkpoint.scheme})")
        return tuple(told)


def _lacks_bf16(devices: Devices) -> bool:
    """Cards before Ampere compute no BF16; vLLM refuses it below compute capability 8.0."""
    return any(arch.startswith("sm_7") for arch in archs_of(devices))


def _published(model: Model, precision: str) -> Checkpoint | None:
    """A repository that holds this model in `precision`; None where none is known, and for this very one."""
    copy = named(model.id)
    found = published(copy.of if copy is not None else model.id, precision)
    return None if found is None or found.id == model.id else found
