"""Which build of an engine is taken: rows of versions.toml."""

import re
from collections.abc import Iterable, Sequence
from dataclasses import replace
from difflib import get_close_matches

from selfhost.core.errors import InputError
from selfhost.core.table import read_table
from selfhost.engines.names import shown
from selfhost.engines.rows import frozen
from selfhost.shapes.plan import EngineBuild

_KNOWN_ELSEWHERE = ("llama.cpp", "llamacpp", "ollama", "tgi", "tensorrt-llm", "mlx", "lmdeploy")
_VERSION = re.compile(r"\d+(\.\d+)+(\.?(post|rc|dev)\d+)?")


def rows() -> tuple[EngineBuild, ...]:
    """Every build, the default of an engine and back end first."""
    return tuple(EngineBuild(**frozen(row)) for row in read_table("selfhost.engines", "versions.toml")["build"])


def choose(*, backend: str, asked: str | None = None, driver: str = "") -> EngineBuild:
    """Return the build for `backend` (`cpu`, `cuda`, `rocm`, `xpu`); `asked` is None, `vllm` or `vllm@0.32.0`.

    With a `driver` (`575.57.08`) that the default does not start on it is the newest line that does, where there is
    one. A version newer than every row is taken as the newest row with that version, not verified. Raises InputError.
    """
    engine, named, version = (asked or "vllm").strip().partition("@")
    engine = engine.lower()
    builds = [build for build in rows() if build.engine == engine]
    if not builds:
        raise unknown_engine(engine)
    fitting = [build for build in builds if build.backend == backend]
    if not fitting:
        raise InputError(
            f"{engine} has no build for `{backend}` that selfhost knows",
            why=f"Known are {_listed(builds)}.",
            fix=_elsewhere(engine, backend),
            id="PL062",
        )
    wanted = version.removeprefix("v")
    if not named:
        return next((build for build in fitting if starts_on(build, driver)), fitting[0])
    exact = [build for build in fitting if build.version == wanted]
    if exact:
        return exact[0]
    newest = fitting[0]
    if _VERSION.fullmatch(wanted) and numbers(wanted) > max(numbers(build.version) for build in fitting):
        return _unverified(newest, wanted)
    raise InputError(
        f"{engine} {version} for `{backend}` is not a version that selfhost knows"
        if version
        else f"`{engine}@` names no version",
        why=f"Flags, log lines and defaults are kept per version; known are {_listed(builds)}, and newer ones.",
        fix=(f"leave the version out, or ask for a known one:\nselfhost up MODEL --engine {engine}@{newest.version}",),
        id="PL061",
    )


def starts_on(build: EngineBuild, driver: str) -> bool:
    """Whether a driver is new enough for what the build is compiled with; an unknown one is taken to be."""
    return not driver or not build.driver_floor or numbers(driver)[:1] >= numbers(build.driver_floor)[:1]


def numbers(version: str) -> tuple[int, ...]:
    """`580.95.05` as numbers that compare."""
    return tuple(int(part) for part in re.findall(r"\d+", version))


def _unverified(newest: EngineBuild, version: str) -> EngineBuild:
    """What is installed is that version; what is claimed of it was read in the newest known one."""
    return replace(
        newest,
        version=version,
        constraints="",
        kernels=(),
        kernels_index="",
        source=f"https://pypi.org/project/{newest.distribution}/{version}/; flags and figures are those of "
        f"{newest.version}",
        verified=False,
    )


def _elsewhere(engine: str, backend: str) -> Sequence[str]:
    others = sorted({build.engine for build in rows() if build.backend == backend})
    fix = [f"use {shown(other)} on it:\nselfhost up MODEL --engine {other}" for other in others if other != engine]
    return (*fix, "or run it on the CPU:\nselfhost up MODEL --device cpu") if backend != "cpu" else tuple(fix)


def _listed(builds: Iterable[EngineBuild]) -> str:
    return ", ".join(f"{build.engine}@{build.version} ({build.backend})" for build in builds)


def unknown_engine(engine: str) -> InputError:
    """The error for an engine that no build is known of, with the nearest known name."""
    known = sorted({build.engine for build in rows()})
    why = f"Known engines: {', '.join(known)}."
    if engine in _KNOWN_ELSEWHERE:
        why = "This version of selfhost knows vLLM and SGLang only."
    near = get_close_matches(engine, known, n=1, cutoff=0.6)
    hint = f"perhaps `{near[0]}`:" if near else "use vLLM, or leave --engine out:"
    return InputError(
        f"`{engine}` is not an engine that selfhost starts",
        why=why,
        fix=(f"{hint}\nselfhost up MODEL --engine {near[0] if near else 'vllm'}",),
        id="PL060",
    )
