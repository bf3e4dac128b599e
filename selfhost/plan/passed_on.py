"""What the user passes on to the engine, as far as it changes what is decided here."""

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from types import MappingProxyType

from selfhost.core.errors import InputError
from selfhost.core.redact import is_secret, mask
from selfhost.engines.base import engine
from selfhost.engines.flags import Vocabulary
from selfhost.plan.passed_numbers import refuse_numbers
from selfhost.shapes.plan import Decision, Evidence, ReasoningPlan
from selfhost.shapes.service import ReasoningMode

_NOTHING: Mapping[str, str] = MappingProxyType({})
_FLAG = re.compile(r"--?[A-Za-z][\w.-]*")
_SEEN = "Every user of this machine can read a command line, and it would be kept in the deployment's files."
_BEHAVIOUR = (
    "--quantization",
    "--quantization-config",
    "--dtype",
    "--kv-cache-dtype",
    "--hf-overrides",
    "--rope-scaling",
    "--rope-theta",
    "--chat-template",
    "--generation-config",
    "--override-generation-config",
    "--speculative-config",
)
"""Flags after which the published scores of the model need not hold (speculation: only by rounding)."""


COUNTED = frozenset({
    "--max-model-len",
    "--max-num-seqs",
    "--max-num-batched-tokens",
    "--kv-cache-dtype",
    "--kv-cache-memory-bytes",
    "--gpu-memory-utilization",
    "--dtype",
    "--quantization",
    "--tensor-parallel-size",
    "--pipeline-parallel-size",
    "--data-parallel-size",
    "--enforce-eager",
    "--optimization-level",
    "--compilation-config",
})  # fmt: skip
"""Flags that move memory and that the estimate follows; parallel sizes beyond the allocation are refused."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PassedOn:
    """The user's engine flags by full name. Asked for by vLLM's name, which another engine may spell otherwise."""

    flags: Mapping[str, str] = field(default_factory=dict)
    moving: tuple[str, ...] = ()
    """Names of those that change how much memory the engine takes."""
    engine: str = "vllm"
    words: tuple[str, ...] = ()
    """All of it, as the engine gets it."""
    asked: Mapping[str, str] = field(default_factory=dict)
    """Flags that an option of selfhost stands for, with that option as written."""

    @classmethod
    def of(cls, engine_name: str, extra: tuple[str, ...], *, asked: Mapping[str, str] = _NOTHING) -> "PassedOn":
        """Read `extra` as the engine does. Raises InputError for what contradicts an allocation, and for secrets."""
        module = engine(engine_name)
        flags = module.overridden(extra)
        _refuse_secrets(extra)
        made = cls(flags=flags, moving=module.moves_memory(extra), engine=engine_name, words=extra, asked=asked)
        refuse_numbers(made.text, made.count)
        return made

    def text(self, name: str) -> str | None:
        own = self.own(name)
        if self.engine != "vllm" and Vocabulary.load(self.engine).flag(own) is None:
            return None  # a word of vLLM's that this engine does not know changes nothing that it does
        return self.flags.get(own)

    def own(self, name: str) -> str:
        """The engine's spelling of what vLLM calls `name`."""
        rows = Vocabulary.load(self.engine).flags if self.engine != "vllm" else ()
        return next((row.name for row in rows if row.vllm == name), name)

    def count(self, name: str) -> int | None:
        """A number in the engine's own spelling (`32k`); None when the flag is absent or says `auto`."""
        value = self.text(name)
        return None if value is None else engine(self.engine).count(value)

    def fraction(self, name: str) -> float | None:
        try:
            return float(self.flags[self.own(name)])
        except (KeyError, ValueError):
            return None

    def by(self, name: str) -> str:
        own = name if name in self.flags else self.own(name)
        return self.asked.get(own) or f"-- {_written(own, self.flags[own])}"

    @property
    def uncounted(self) -> tuple[str, ...]:
        """Flags that move memory in a way that the estimate does not follow, as written."""
        return tuple(_written(name, self.flags[name]) for name in self.moving if not self._is_counted(name))

    def _is_counted(self, name: str) -> bool:
        known = Vocabulary.load(self.engine).flag(name)
        return name in COUNTED or bool(known and known.vllm in COUNTED)

    @property
    def stretches_positions(self) -> bool:
        """The user extends the trained positions (RoPE scaling) knowingly."""
        return any("rope" in name or "rope" in value for name, value in self.flags.items())

    @property
    def compiles(self) -> bool:
        """Eager execution was switched off."""
        level = self.flags.get("--optimization-level", "0")
        return self.flags.get("--enforce-eager") == "false" or level != "0" or "--compilation-config" in self.flags

    def decisions(self) -> tuple[Decision, ...]:
        return tuple(
            Decision(
                field="engine flag",
                value=_written(name, value),
                reason=self._reason(name),
                source="user",
                evidence=Evidence.ASSUMED,
                changes_behaviour=name in _BEHAVIOUR,
                by=self.by(name),
            )
            for name, value in self.flags.items()
            if name not in self.asked
        )

    def _reason(self, name: str) -> str:
        known = Vocabulary.load(self.engine).flag(name)
        reason = "passed on to the engine as it is"
        if known is None:
            reason += "; selfhost does not know this flag"
        elif known.planned:
            reason += "; it counts before selfhost's own choice"
        if name not in self.moving:
            return reason
        counted = (
            "the memory was computed with it" if self._is_counted(name) else "what it does to memory is not computed"
        )
        return f"{reason}; {counted}"

    def reasoning(self, plan: ReasoningPlan) -> ReasoningPlan:
        """The reasoning plan as the user's own parser and template defaults make it."""
        if "--reasoning-parser" in self.flags:
            plan = replace(plan, parser=self.flags["--reasoning-parser"])
        told = _object(self.flags.get("--default-chat-template-kwargs", ""))
        if told is None:
            return plan
        plan = replace(plan, template_defaults=told)
        switch = next((told[key] for key in ("enable_thinking", "thinking") if isinstance(told.get(key), bool)), None)
        if switch is None or not plan.can_think:
            return plan
        return replace(plan, mode=ReasoningMode.ON if switch else ReasoningMode.OFF)


def _refuse_secrets(extra: tuple[str, ...]) -> None:
    """Raise InputError for a flag named like a secret, or a value that is one: it would be in `ps` and in our files.

    The value itself is in no word of this error.
    """
    for token in extra:
        name = token.partition("=")[0]
        if _names_a_secret(name):
            raise InputError(
                f"`{name}` hands a secret to the engine on its command line",
                why=_SEEN,
                fix=("leave it out; what the engine reads from a file or a variable is safer",),
                id="PL070",
            )
        if mask(token) != token:
            raise InputError(
                f"a word behind `--` holds a secret: `{mask(token)}`",
                why=_SEEN,
                fix=("leave it out, or name a file that holds it if the engine can read one",),
                id="PL070",
            )


def _names_a_secret(flag: str) -> bool:
    """By every part of a dotted name, or as a log would be masked; `api_key` looks like one with a word before it."""
    if not _FLAG.fullmatch(flag):
        return False
    written = f"{flag.replace('_', '-')} ........"
    if mask(written) != written:
        return True
    return any(is_secret(f"its_{part}") for part in flag.lstrip("-").replace("-", "_").split("."))


def _written(name: str, value: str) -> str:
    if value == "true":
        return name
    return name.replace("--", "--no-", 1) if value == "false" else f"{name} {value}"


def without_repeats(planned: tuple[str, ...], passed: PassedOn) -> tuple[str, ...]:
    """`planned` flags (name, value, name, value…) without those that the user gives too."""
    pairs = zip(planned[::2], planned[1::2], strict=True)
    return tuple(token for name, value in pairs if name not in passed.flags for token in (name, value))


def _object(text: str) -> dict[str, object] | None:
    try:
        found = json.loads(text)
    except ValueError:
        return None
    return found if isinstance(found, dict) else None
