"""run.sh: a shell script that makes the network and the volumes where they are missing, and runs the container."""

from collections.abc import Mapping
from dataclasses import dataclass

from selfhost.plan.container.run_words import command_words, global_options, run_options
from selfhost.render.compose import has_own_network, volume_keys
from selfhost.render.escape import shell_words
from selfhost.render.lines import Line, Reasons
from selfhost.render.refuse import refuse_unsayable
from selfhost.render.words import by_flag
from selfhost.shapes.workload import Workload

FILE = "run.sh"


@dataclass(frozen=True, slots=True, kw_only=True)
class Parts:
    """What the template puts together. `reasons`: option and reason, since no comment can stand in the command."""

    program: str
    networks: tuple[str, ...]
    volumes: tuple[str, ...]
    labels: tuple[str, ...]
    begin: tuple[str, ...]
    lines: tuple[Line, ...]
    reasons: tuple[tuple[str, str], ...]


def parts(workload: Workload, program: str, reasons: Mapping[str, str]) -> Parts:
    """Raises InputError for what the line cannot say."""
    refuse_unsayable(workload, program)
    why = Reasons(reasons)
    options = run_options(workload, program)
    said = [(_name(option.words), why.of(_key(option.key, option.words, workload))) for option in options]
    said.append((workload.image, why.of("image")))
    words = [option.words for option in options]
    tail = by_flag(command_words(workload))
    said += [(one[0], why.of(f"argv.{one[0]}")) for one in tail]
    listed = [*words, (workload.image,), *map(tuple, tail)]
    begin = [word for option in global_options(workload, program) for word in option.words]
    return Parts(
        program=program,
        networks=(workload.network,) if has_own_network(workload) else (),
        volumes=tuple(volume_keys(workload)),
        labels=tuple(word for name, value in workload.labels.items() for word in ("--label", f"{name}={value}")),
        begin=(program, *begin, "run", "--detach"),
        lines=tuple(
            Line(shell_words(one), "", 1, joined=number < len(listed)) for number, one in enumerate(listed, start=1)
        ),
        reasons=tuple((name, text) for name, text in said if text),
    )


def _key(key: str, words: tuple[str, ...], workload: Workload) -> str:
    if key == "security_opt":
        return f"security_opt.{workload.security_opt.index(words[1])}"
    return key


def _name(words: tuple[str, ...]) -> str:
    """`--env HOME`, `--mount …target=/model`: enough to find the line."""
    if words[0] == "--env":
        return f"--env {words[1].partition('=')[0]}"
    if words[0] in ("--security-opt", "--ulimit", "--device", "--network"):
        return " ".join(words)
    if words[0] == "--mount":
        return f"--mount {words[1].partition('target=')[2].partition(',')[0]}"
    return words[0]
