"""Slurm, Apptainer and enroot lines → Workloads, with what the job asks for and what it hands into the container."""

import re
from collections.abc import Sequence
from dataclasses import replace
from typing import Final

from selfhost.core.table import read_table
from selfhost.shapes.workload import ContainerEngine, EnvSource, Form, Spot, Workload
from selfhost.visibility.files import Files
from selfhost.visibility.readers.draft import Draft
from selfhost.visibility.readers.process import is_engine, script_calls
from selfhost.visibility.readers.process import workload as process_workload
from selfhost.visibility.readers.run import filled, image_of
from selfhost.visibility.readers.run import from_call as run_from_call
from selfhost.visibility.readers.run_options import Option
from selfhost.visibility.readers.script import Call, calls, shell_text, strip_prefixes
from selfhost.visibility.readers.words import Word

_DIRECTIVE = re.compile(r"^#SBATCH[ \t]+(?P<options>[^#\n]*)", re.MULTILINE)
_SUBMITTERS: Final = ("srun", "sbatch", "salloc")
_APPTAINER: Final = ("apptainer", "singularity")
_ASKED: Final = {
    "G": "gpus",
    "container-image": "container_image",
    "constraint": "constraint",
    "exclusive": "exclusive",
    "export": "export",
    "gpus": "gpus",
    "gpus-per-node": "gpus_per_node",
    "gpus-per-task": "gpus_per_task",
    "gpu-bind": "gpu_bind",
    "gres": "gres",
    "nodes": "nodes",
    "ntasks": "ntasks",
    "ntasks-per-node": "ntasks_per_node",
    "partition": "partition",
    "N": "nodes",
    "n": "ntasks",
    "p": "partition",
}
"""Options of a job that are kept, by the key of Workload.job."""
_OPTIONS: Final = read_table("selfhost.visibility.readers", "options.toml")
_SLURM_ALONE: Final = frozenset(_OPTIONS["slurm"]["alone"])
_APPTAINER_ALONE: Final = frozenset(_OPTIONS["apptainer"]["alone"])
_FLAGS: Final = {
    "C": "containall",
    "c": "contain",
    "cleanenv": "cleanenv",
    "compat": "compat",
    "contain": "contain",
    "containall": "containall",
    "e": "cleanenv",
    "nv": "nv",
    "nvccli": "nvccli",
    "rocm": "rocm",
}
_ENROOT_ALONE: Final = frozenset(_OPTIONS["enroot"]["alone"])
_TRANSPORTS: Final = ("docker://", "oras://", "library://", "shub://")
_PASSED_IN: Final = ("APPTAINERENV_", "SINGULARITYENV_")


def read(text: str, *, path: str, files: Files) -> tuple[Workload, ...]:
    """Every step of a batch script. Raises InputError for a quote that is not closed."""
    job = job_of(text)
    found = (from_call(call, path=path, files=files, job=job) for call in script_calls(text, path=path))
    return tuple(workload for workload in found if workload is not None)


def job_of(text: str) -> dict[str, str]:
    """What `#SBATCH` lines ask for."""
    job: dict[str, str] = {}
    for match in _DIRECTIVE.finditer(text):
        words = [Word(part, 1) for part in match["options"].split()]
        options, _ = split(words, alone=_SLURM_ALONE)
        job |= _asked(options)
    return job


def from_call(call: Call, *, path: str, files: Files, job: dict[str, str]) -> Workload | None:
    """What one command of a job starts; None when it is no batch line."""
    strip = Call(words=list(call.words), env=call.env, prefixes=call.prefixes)
    if strip.program in _SUBMITTERS:
        return _step(strip, path=path, files=files, job=job)
    if strip.program in _APPTAINER:
        return _apptainer(strip, path=path, files=files, job=job)
    return _enroot(strip, path=path, files=files, job=job) if strip.program == "enroot" else None


def split(words: Sequence[Word], *, alone: frozenset[str]) -> tuple[list[Option], list[Word]]:
    """Options in front, and what follows them. A short option may hold its value, as `-N2`."""
    options: list[Option] = []
    left = list(words)
    while left and left[0].text.startswith("-") and len(left[0].text) > 1:
        word = left.pop(0)
        if word.text == "--":
            break
        if word.text.startswith("--"):
            name, equals, _ = word.text[2:].partition("=")
            value = word.from_(len(name) + 3) if equals else None
        else:
            name = word.text[1]
            value = word.from_(2) if len(word.text) > 2 and name not in alone else None
        if value is None and name not in alone and left:
            value = left.pop(0)
        options.append(Option(name=name, value=value, word=word))
    return options, left


def _asked(options: Sequence[Option]) -> dict[str, str]:
    return {
        _ASKED[option.name]: option.value.text if option.value is not None else "true"
        for option in options
        if option.name in _ASKED
    }


def _step(call: Call, *, path: str, files: Files, job: dict[str, str]) -> Workload | None:
    options, rest = split(call.words[1:], alone=_SLURM_ALONE)
    asked = {**job, **_asked(options)}
    env = {} if asked.get("export", "").upper() == "NONE" else call.env
    inner = Call(words=list(rest), env=dict(env), prefixes=call.prefixes)
    _, assigned = strip_prefixes(inner.words)
    for word in assigned:
        name, _, _ = word.text.partition("=")
        inner.env[name] = word.from_(len(name) + 1)
    image = next((option for option in options if option.name == "container-image" and option.value), None)
    if image is None:
        return _plain(inner, path=path, files=files, job=asked)
    draft = Draft(files=files)
    draft.mark("name", call.words[0])
    _inherit(draft, inner.env, asked)
    for option in options:
        if option.name == "container-mounts":
            _binds(draft, option)
        elif option.name == "container-env":
            _named(draft, option)
        elif option.name == "export":
            draft.mark("export", option.word)
            _named(draft, option)
    name = image.value.text if image.value else ""
    return _container(draft, image, inner.words, job=asked, path=path, engine=ContainerEngine.UNKNOWN, name=name)


def _plain(call: Call, *, path: str, files: Files, job: dict[str, str]) -> Workload | None:
    """A step without a container of Slurm's own: Apptainer, docker, or the engine itself."""
    if not call.words:
        return None
    script = shell_text(call.words)
    if script is not None:
        try:
            inner = list(calls(script.text, line=script.line, env=call.env))
        except ValueError:
            return None
        found = [_plain(within, path=path, files=files, job=job) for within in inner]
        return next((workload for workload in reversed(found) if workload is not None), None)
    nested = from_call(call, path=path, files=files, job=job) or run_from_call(call, path=path, files=files)
    if nested is not None:
        return replace(nested, job={**job, **nested.job})
    if is_engine(call):
        return replace(process_workload(call, name=call.program, path=path), form=Form.BATCH, job=job)
    return None


def _apptainer(call: Call, *, path: str, files: Files, job: dict[str, str]) -> Workload | None:
    _, rest = split(call.words[1:], alone=_APPTAINER_ALONE)
    skip = 2 if [word.text for word in rest[:2]] == ["instance", "start"] else 1
    if not rest or rest[0].text not in ("exec", "run", "instance", "shell"):
        return None
    options, rest = split(rest[skip:], alone=_APPTAINER_ALONE)
    if not rest:
        return None
    asked = dict(job)
    draft = Draft(files=files)
    draft.mark("name", call.words[0])
    for option in options:
        if option.name in _FLAGS:
            asked[_FLAGS[option.name]] = "true"
            draft.mark(f"job.{_FLAGS[option.name]}", option.word)
    clean = {"cleanenv", "containall", "compat"} & set(asked)
    inherited = {name: word for name, word in call.env.items() if not name.startswith(_PASSED_IN)}
    _inherit(draft, {} if clean else inherited, asked)
    _inherit(
        draft, {name.partition("_")[2]: word for name, word in call.env.items() if name.startswith(_PASSED_IN)}, {}
    )
    for option in options:
        if option.name in ("bind", "B"):
            _binds(draft, option)
        elif option.name == "env":
            _variables(draft, option)
        elif option.name == "env-file" and option.value is not None:
            draft.take(Option(name="env-file", value=option.value, word=option.word))
    image = Option(name="image", value=rest[0], word=rest[0])
    words = rest[1:]
    if skip == 2:
        words = rest[2:]  # behind the image comes the instance's name
    return _container(draft, image, words, job=asked, path=path, engine=ContainerEngine.APPTAINER, name=rest[0].text)


def _enroot(call: Call, *, path: str, files: Files, job: dict[str, str]) -> Workload | None:
    if [word.text for word in call.words[1:2]] != ["start"]:
        return None
    options, rest = split(call.words[2:], alone=_ENROOT_ALONE)
    if not rest:
        return None
    draft = Draft(files=files)
    draft.mark("name", call.words[0])
    for option in options:
        if option.name in ("env", "e"):
            draft.take(Option(name="env", value=option.value, word=option.word))
        elif option.name in ("mount", "m"):
            _binds(draft, option)
    image = Option(name="image", value=rest[0], word=rest[0])
    return _container(draft, image, rest[1:], job=job, path=path, engine=ContainerEngine.UNKNOWN, name=rest[0].text)


def _container(
    draft: Draft,
    image: Option,
    words: Sequence[Word],
    *,
    job: dict[str, str],
    path: str,
    engine: ContainerEngine,
    name: str,
) -> Workload:
    reference = image_of(image.value) if image.value is not None else ""
    for transport in _TRANSPORTS:
        reference = reference.removeprefix(transport)
    draft.mark("image", image.word)
    for number, word in enumerate(words):
        draft.mark(f"argv.{number}", word)
    argv = tuple(word.text for word in words)
    said = Workload(
        name=name, argv=argv, form=Form.BATCH, container_engine=engine, image=reference.replace("#", "/"), path=path,
        job=job,
    )  # fmt: skip
    return filled(said, draft)


def _inherit(draft: Draft, env: dict[str, Word], job: dict[str, str]) -> None:
    """Variables that the script exports reach the step, unless `--export` names others only."""
    export = job.get("export", "ALL")
    chosen = {part.partition("=")[0] for part in export.split(",")}
    for name, word in env.items():
        if word.dynamic or not ("ALL" in chosen or name in chosen):
            continue
        draft.variable(name, word.text, Spot(line=word.line, column=word.column))


def _named(draft: Draft, option: Option) -> None:
    """`NAME,NAME=value` of --export and --container-env: a name alone is passed through."""
    if option.value is None:
        return
    spot = Spot(line=option.word.line, column=option.word.column)
    for part in option.value.text.split(","):
        name, equals, value = part.partition("=")
        if name in ("ALL", "NONE", "NIL", ""):
            continue
        if equals and "$" not in value:
            draft.variable(name, value, spot)
        elif name not in draft.env:
            draft.variable(name, None, spot, EnvSource.PASSED_THROUGH)


def _variables(draft: Draft, option: Option) -> None:
    """Apptainer's `--env A=1,B=2`; a part without `=` belongs to the value before it."""
    if option.value is None:
        return
    parts: list[str] = []
    for part in option.value.text.split(","):
        if "=" in part or not parts:
            parts.append(part)
        else:
            parts[-1] += f",{part}"
    for part in parts:
        name, _, value = part.partition("=")
        spot = Spot(line=option.word.line, column=option.word.column)
        if "$" in value or "`" in value:
            itself = value in (f"${name}", f"${{{name}}}")
            draft.variable(name, None, spot, EnvSource.PASSED_THROUGH if itself else EnvSource.REFERENCE)
        else:
            draft.variable(name, value, spot)


def _binds(draft: Draft, option: Option) -> None:
    if option.value is None:
        return
    for part in option.value.text.split(","):
        if "/" in part:
            source, colon, _ = part.partition(":")
            text = part if colon else f"{source}:{source}"
            draft.take(Option(name="volume", value=Word(text, option.word.line), word=option.word))
