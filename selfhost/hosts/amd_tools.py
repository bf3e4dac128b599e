"""What amd-smi, rocm-smi and rocminfo say of all cards: an addition to what the kernel says, and no proof.

rocm-smi and amd-smi read sysfs: they succeed where compute is refused.
"""

from dataclasses import dataclass

from selfhost.core.system import Completed, System
from selfhost.hosts import amd_smi, rocm_smi
from selfhost.hosts.amd_reading import Reading, merge
from selfhost.hosts.recorded_tools import answers, is_asked
from selfhost.hosts.tool_failure import failure

_TOOLS = ("amd-smi", "rocm-smi", "rocminfo")
PROGRAMS = ("amd-smi", "rocm-smi", "rocminfo", "amd_smi.py", "rocm_smi.py")
_QUESTIONS = (
    ("amd-smi", "list", "-e", "--json"),
    ("amd-smi", "static", "--json"),
    ("amd-smi", "metric", "-m", "--json"),
    ("amd-smi", "process", "--json"),
    ("amd-smi", "version", "--json"),
)
_OLDER = (("rocm-smi", "--showproductname", "--showuniqueid", "--showbus", "--showmeminfo", "vram", "--json"),)
_LINKS = (("amd-smi", "topology", "--json"),)


@dataclass(frozen=True, slots=True)
class Answer:
    """What the tools say together."""

    cards: tuple[Reading, ...] = ()
    rocm: str = ""
    driver: str = ""
    """As the tools give it: a release of amdgpu, or a mangled kernel version when the driver is the kernel's own."""
    failure: str = ""
    links: tuple[tuple[int, int, str, str], ...] = ()


def is_recorded(system: System) -> bool:
    return is_asked(system, PROGRAMS)


def ask(system: System) -> Answer:
    done = answers(system, PROGRAMS, _QUESTIONS)
    if not any(_parsed(one) for one in done):
        done = (*done, *(one for one in answers(system, PROGRAMS, _OLDER) if one not in done))
    readings = [card for one in done for card in _parsed(one)]
    # amd-smi first: of the three it alone knows the numbers of all layers.
    by_tool = merge([card for tool in _TOOLS for card in merge([one for one in readings if one.tool == tool])])
    versions = [amd_smi.versions(one.stdout) for one in done]
    return Answer(
        cards=by_tool,
        rocm=next((rocm for rocm, _ in versions if rocm), ""),
        driver=next((driver for _, driver in versions if driver), "")
        or next((card.driver for card in by_tool if card.driver), ""),
        failure=failure("amd", done),
    )


def links(system: System) -> tuple[tuple[int, int, str, str], ...]:
    """Pairs of amd-smi's own numbers. Asked only for the topology: it is slow."""
    return next((found for one in answers(system, PROGRAMS, _LINKS) if (found := amd_smi.links(one.stdout))), ())


def _parsed(done: Completed) -> tuple[Reading, ...]:
    """By what the output is, not by how it was asked for; an exit code beside usable output says nothing."""
    for parse in (rocm_smi.parse, amd_smi.parse, rocm_smi.parse_rocminfo):
        found = parse(done.stdout)
        if found:
            return found
    return ()
