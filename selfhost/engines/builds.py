"""Which build of an engine is installed: rows of versions.toml."""

from collections.abc import Iterable
from difflib import get_close_matches

from selfhost.core.errors import InputError
from selfhost.core.table import read_table
from selfhost.shapes.plan import EngineBuild

_KNOWN_ELSEWHERE = ("sglang", "llama.cpp", "llamacpp", "ollama", "tgi", "tensorrt-llm", "mlx", "lmdeploy")


def rows() -> tuple[EngineBuild, ...]:
    """Every build, the default of an engine and back end first."""
    return tuple(
        EngineBuild(**{**row, "requirements": tuple(row["requirements"]), "remove": tuple(row["remove"])})
        for row in read_table("selfhost.engines", "versions.toml")["build"]
    )


def choose(*, backend: str, asked: str | None = None) -> EngineBuild:
    """Return the build for `backend` (`cpu`, `cuda`); `asked` is None, `vllm` or `vllm@0.32.0`. Raises InputError."""
    engine, _, version = (asked or "vllm").strip().partition("@")
    engine = engine.lower()
    builds = [build for build in rows() if build.engine == engine]
    if not builds:
        raise unknown_engine(engine)
    fitting = [build for build in builds if build.backend == backend]
    if not fitting:
        raise InputError(
            f"{engine} has no build for `{backend}` that selfhost can install",
            why=f"Known are {_listed(builds)}.",
            fix=("run it on the CPU instead:\nselfhost up MODEL --device cpu",),
            id="PL062",
        )
    wanted = version.removeprefix("v")
    if not wanted:
        return fitting[0]
    for build in fitting:
        if build.version == wanted:
            return build
    raise InputError(
        f"{engine} {version} for `{backend}` is not a version that selfhost knows",
        why=f"Flags, log lines and defaults are kept per version; known are {_listed(builds)}.",
        fix=(
            f"leave the version out, or ask for a known one:\nselfhost up MODEL --engine {engine}@{fitting[0].version}",
        ),
        id="PL061",
    )


def _listed(builds: Iterable[EngineBuild]) -> str:
    return ", ".join(f"{build.engine}@{build.version} ({build.backend})" for build in builds)


def unknown_engine(engine: str) -> InputError:
    """The error for an engine that no build starts, with the nearest known name."""
    known = sorted({build.engine for build in rows()})
    why = f"Known engines: {', '.join(known)}."
    if engine in _KNOWN_ELSEWHERE:
        reads = "; it reads and explains the logs of SGLang too" if engine == "sglang" else ""
        why = f"This version of selfhost starts vLLM only{reads}."
    near = get_close_matches(engine, known, n=1, cutoff=0.6)
    hint = f"perhaps `{near[0]}`:" if near else "use vLLM, or leave --engine out:"
    return InputError(
        f"`{engine}` is not an engine that selfhost starts",
        why=why,
        fix=(f"{hint}\nselfhost up MODEL --engine {(near or known)[0]}",),
        id="PL060",
    )
