"""Flags of the serving engine in others' files: parsers that do not fit the model, flags that the version dropped."""

from collections.abc import Iterator, Sequence

from selfhost.core.versions import numbers
from selfhost.engines.parsers import Parsers, parsers
from selfhost.engines.removed import Removed, removed
from selfhost.models.families import family_of
from selfhost.shapes.finding import Severity
from selfhost.shapes.host import Host
from selfhost.shapes.model import Family, ReasoningClass
from selfhost.shapes.workload import Workload
from selfhost.visibility.engine_size import value_of
from selfhost.visibility.images import engine_of, engine_version
from selfhost.visibility.rule import Found, place, rule

RECIPES = "https://github.com/vllm-project/recipes"
_MODEL_FLAGS = ("--model", "--model-path")
_KINDS = (("--reasoning-parser", "reasoning"), ("--tool-call-parser", "tool"))
_PLUGINS = {"reasoning": "--reasoning-parser-plugin", "tool": "--tool-parser-plugin"}
_BEFORE_QWEN3_PARSER = (0, 9)
"""vLLM's `qwen3` reasoning parser came with 0.9; until then its documentation named deepseek_r1 for Qwen3."""


def model_of(workload: Workload) -> str:
    """Hub id or path of the model, by its flag or as the word behind `serve`; empty when the text does not say."""
    named = value_of(workload.argv, _MODEL_FLAGS)
    if named:
        return named
    words = list(workload.argv)
    if "serve" in words[:3]:
        after = words[words.index("serve") + 1 :]
        return after[0] if after and not after[0].startswith("-") else ""
    first = words[0] if words else ""
    return first if "/" in first and not first.startswith(("/", "-", ".")) else ""


def _family(workload: Workload) -> Family | None:
    model = model_of(workload)
    if not model or "$" in model:
        return None
    family = family_of(model)
    return None if family.id == "none" else family


def _at(workload: Workload, flag: str) -> str:
    for number, word in enumerate(workload.argv):
        if word.partition("=")[0].replace("_", "-") == flag:
            return f"argv.{number}"
    return "argv"


@rule("DV091", Severity.WARNING, source=RECIPES)
def reasoning_parser_of_another_family(workload: Workload, host: Host | None) -> Iterator[Found]:
    del host
    engine, family = engine_of(workload), _family(workload)
    given = value_of(workload.argv, ("--reasoning-parser",))
    names = parsers(engine) if engine else None
    if family is None or names is None or not given or given in ("auto", "") or given not in names.reasoning:
        return
    wanted = family.reasoning_parser.get(engine or "")
    version = engine_version(workload.image)
    if wanted and version and version < _BEFORE_QWEN3_PARSER:
        return
    if family.reasoning_class is ReasoningClass.NONE:
        yield Found(
            title=f"{model_of(workload)} does not think, yet --reasoning-parser {given} is set",
            place=place(workload, _at(workload, "--reasoning-parser")),
            evidence=f"--reasoning-parser {given} · {model_of(workload)}",
            why="The parser waits for the end of a thought that never comes, so the whole answer lands in `reasoning` "
            "and `content` is empty.",
            fix=("take --reasoning-parser out",),
            severity=Severity.ERROR,
        )
    elif wanted and not names.same(given, wanted):
        yield Found(
            title=f"--reasoning-parser {given} is not the one for {model_of(workload)}, which is {wanted}",
            place=place(workload, _at(workload, "--reasoning-parser")),
            evidence=f"--reasoning-parser {given} · {model_of(workload)}",
            why="A parser must know how the template opens a thought and whether thinking is off. With another "
            "family's, answers without thinking land in `reasoning`, or the thought stays in the answer.",
            fix=(f"name the family's own:\n--reasoning-parser {wanted}",),
        )


@rule("DV092", Severity.WARNING, source=RECIPES)
def tool_parser_of_another_family(workload: Workload, host: Host | None) -> Iterator[Found]:
    del host
    engine, family = engine_of(workload), _family(workload)
    given = value_of(workload.argv, ("--tool-call-parser",))
    names = parsers(engine) if engine else None
    if names is None or not given or given == "auto" or given not in names.tool:
        return
    wanted = family.tool_parser.get(engine or "") if family else None
    if wanted and not names.same(given, wanted):
        yield Found(
            title=f"--tool-call-parser {given} does not read the calls of {model_of(workload)}; {wanted} does",
            place=place(workload, _at(workload, "--tool-call-parser")),
            evidence=f"--tool-call-parser {given} · {model_of(workload)}",
            why="Each family writes calls in its own form; another's parser finds none: calls come back as text.",
            fix=(f"name the family's own:\n--tool-call-parser {wanted}",),
        )
    if engine == "vllm" and "--enable-auto-tool-choice" not in {word.replace("_", "-") for word in workload.argv}:
        yield Found(
            title="--tool-call-parser does nothing without --enable-auto-tool-choice",
            place=place(workload, _at(workload, "--tool-call-parser")),
            evidence=f"--tool-call-parser {given}",
            why='vLLM parses calls only with both flags; a request with `tool_choice: "auto"` is refused with 400.',
            fix=("add the other flag:\n--enable-auto-tool-choice",),
        )


@rule("DV093", Severity.ERROR, source="https://github.com/vllm-project/vllm/blob/main/vllm/engine/arg_utils.py")
def flag_was_dropped(workload: Workload, host: Host | None) -> Iterator[Found]:
    """An error where the image's tag says a version without it; a warning where the tag says none."""
    del host
    engine = engine_of(workload)
    if engine is None:
        return
    version = engine_version(workload.image)
    known = parsers(engine)
    for row in removed(engine):
        key = _where(workload, row)
        if not key or (version is not None and version < numbers(row.since)):
            continue
        said = ".".join(map(str, version)) if version else f"as of {known.version if known else 'today'}"
        yield Found(
            title=f"{engine} {said} does not know {row.name}{f' {row.value}' if row.value else ''}",
            place=place(workload, key),
            evidence=f"gone since {row.since}; image {workload.image or 'not named'}",
            why="An unknown variable is ignored, so what it set is not set."
            if row.kind == "env"
            else "The engine's argument parser stops at an unknown flag or value, before anything is loaded.",
            fix=(f"use {row.instead}" if row.instead else "take it out: nothing takes its place",),
            severity=Severity.WARNING if version is None or row.kind == "env" else Severity.ERROR,
        )


def _where(workload: Workload, row: Removed) -> str:
    """Key of the place where the row's flag, value or variable stands; empty when it does not."""
    if row.kind == "env":
        return f"env.{row.name}" if row.name in workload.env else ""
    for number, word in enumerate(workload.argv):
        name, equals, value = word.partition("=")
        if name.replace("_", "-") != row.name:
            continue
        following = value if equals else _after(workload.argv, number)
        if row.kind == "flag" or following == row.value:
            return f"argv.{number}"
    return ""


def _after(words: Sequence[str], number: int) -> str:
    return words[number + 1] if number + 1 < len(words) else ""


@rule("DV094", Severity.ERROR, source="https://docs.vllm.ai/en/latest/features/tool_calling.html")
def parser_is_unknown(workload: Workload, host: Host | None) -> Iterator[Found]:
    del host
    engine = engine_of(workload)
    names = parsers(engine) if engine else None
    if names is None:
        return
    version = engine_version(workload.image)
    for flag, kind in _KINDS:
        if value_of(workload.argv, (_PLUGINS[kind],)) is not None:
            continue  # a file brings parsers of its own
        given = value_of(workload.argv, (flag,))
        if not given or "$" in given or given in _registered(names, kind):
            continue
        pinned = version is not None and version[:2] == numbers(names.version)[:2]
        yield Found(
            title=f"{engine} has no {kind} parser `{given}`",
            place=place(workload, _at(workload, flag)),
            evidence=f"{flag} {given}; names of {engine} {names.version}",
            why="The two engines spell the same parser in different ways, and each refuses a name it does not know."
            + ("" if pinned else f" Names were read from {engine} {names.version}; another version may know it."),
            fix=(_nearest(given, _registered(names, kind), flag),),
            severity=Severity.ERROR if pinned else Severity.WARNING,
        )


def _registered(names: Parsers, kind: str) -> frozenset[str]:
    return names.reasoning if kind == "reasoning" else names.tool


def _nearest(given: str, known: frozenset[str], flag: str) -> str:
    import difflib  # at use: only a wrong name needs it

    plain = given.replace("-", "").replace("_", "").lower()
    same = [name for name in sorted(known) if name.replace("-", "").replace("_", "").lower() == plain]
    near = same or difflib.get_close_matches(given, sorted(known), n=3, cutoff=0.7)
    return f"perhaps:\n{flag} {near[0]}" if near else f"see the names with: selfhost plan MODEL, or take {flag} out"
