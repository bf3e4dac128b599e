"""nvidia-smi: asked once, with a time-out, in CSV, and in XML where CSV is not to be had. It may never answer.

Its default table truncates names and changes between releases, so it is not read (NVIDIA: NVSMI output is no contract).
"""

import csv
import io
import re
from collections.abc import Callable
from dataclasses import dataclass
from xml.etree import ElementTree as ET

from selfhost.core.system import Completed, System
from selfhost.shapes.host import Fact, Known, Unknown

TIMEOUT_S = 5.0
# Under WSL2 and in the docker snap the program is not on PATH.
PROGRAMS = ("nvidia-smi", "/usr/lib/wsl/lib/nvidia-smi", "/var/lib/snapd/hostfs/usr/bin/nvidia-smi")
FIELDS = (
    "index",
    "name",
    "uuid",
    "pci.bus_id",
    "memory.total",
    "memory.free",
    "compute_cap",
    "driver_version",
    "mig.mode.current",
)
QUERY = (f"--query-gpu={','.join(FIELDS)}", "--format=csv,noheader,nounits")
XML = ("-q", "-x")
LIST = ("-L",)
PLAIN: tuple[str, ...] = ()
_MIB = 1024**2


@dataclass(frozen=True, slots=True, kw_only=True)
class SmiCard:
    """One card as nvidia-smi knows it. Memory in bytes."""

    index: int
    name: str
    uuid: str
    bus_id: str
    """In the form of sysfs, `0000:01:00.0`; empty on boards without a bus."""
    memory_total: Fact[int]
    memory_free: Fact[int]
    arch: Fact[str]
    driver: str
    mig: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class SmiAnswer:
    """Cards, or the reason why there are none."""

    cards: tuple[SmiCard, ...] = ()
    failure: str = ""


def ask(system: System) -> SmiAnswer:
    """Query every card. One hung call costs TIMEOUT_S and is not repeated in another form.

    An installed program answers the first form; the others are for machines that were recorded with them alone.
    """
    for program in PROGRAMS:
        for arguments in (QUERY, XML, LIST, PLAIN):
            done = system.run([program, *arguments], timeout_s=TIMEOUT_S)
            if done.missing:
                continue
            if done.timed_out:
                return SmiAnswer(failure=f"nvidia-smi gave no answer within {TIMEOUT_S:.0f} s")
            if arguments is QUERY and "not a valid field" in done.stdout:
                continue  # a driver that does not know one of the fields still speaks XML
            return _answer(done, _READERS[arguments])
    return SmiAnswer(failure="nvidia-smi is not installed")


def _answer(done: Completed, read: Callable[[str], tuple[SmiCard, ...]]) -> SmiAnswer:
    # Its error text goes to stdout; stderr is for the odd wrapper.
    lines = [line.strip() for line in (done.stdout + "\n" + done.stderr).splitlines() if line.strip()]
    if done.rc != 0:
        return SmiAnswer(failure=f"nvidia-smi ended with {done.rc}: {lines[0] if lines else 'no text'}")
    cards = read(done.stdout)
    if cards:
        return SmiAnswer(cards=cards)
    return SmiAnswer(failure=f"nvidia-smi lists no card{f': {lines[0][:120]}' if lines else ''}")


def _from_csv(text: str) -> tuple[SmiCard, ...]:
    found: list[SmiCard] = []
    for row in csv.reader(io.StringIO(text), skipinitialspace=True):
        if len(row) != len(FIELDS) or not row[0].strip().isdecimal():
            continue
        value = dict(zip(FIELDS, (cell.strip() for cell in row), strict=True))
        found.append(
            SmiCard(
                index=int(value["index"]),
                name=value["name"],
                uuid=value["uuid"],
                bus_id=bus_address(value["pci.bus_id"]),
                memory_total=mebibytes(value["memory.total"]),
                memory_free=mebibytes(value["memory.free"]),
                arch=_arch(value["compute_cap"]),
                driver=value["driver_version"],
                mig=value["mig.mode.current"] == "Enabled",
            )
        )
    return tuple(found)


def _from_xml(text: str) -> tuple[SmiCard, ...]:
    try:
        root = ET.fromstring(text)  # noqa: S314  output of a local root-owned program, no network, no entities
    except ET.ParseError:
        return ()
    return tuple(
        SmiCard(
            index=number,
            name=gpu.findtext("product_name", "").strip(),
            uuid=gpu.findtext("uuid", "").strip(),
            bus_id=bus_address(gpu.get("id", "")),
            memory_total=mebibytes(gpu.findtext("fb_memory_usage/total", "")),
            memory_free=mebibytes(gpu.findtext("fb_memory_usage/free", "")),
            arch=Unknown("nvidia-smi -q has no compute capability"),
            driver=root.findtext("driver_version", "").strip(),
            mig=gpu.findtext("mig_mode/current_mig", "").strip() == "Enabled",
        )
        for number, gpu in enumerate(root.findall("gpu"))
    )


def _from_list(text: str) -> tuple[SmiCard, ...]:
    """`GPU 0: NVIDIA A10 (UUID: GPU-…)`: names and uuids, no more."""
    nothing = Unknown("nvidia-smi -L does not say")
    return tuple(
        SmiCard(
            index=int(index),
            name=name,
            uuid=uuid,
            bus_id="",
            memory_total=nothing,
            memory_free=nothing,
            arch=nothing,
            driver="",
        )
        for index, name, uuid in re.findall(r"(?m)^GPU (\d+): (.+) \(UUID: (GPU-[0-9a-fA-F-]+)\)", text)
    )


def _no_cards(_: str) -> tuple[SmiCard, ...]:
    return ()


_READERS: dict[tuple[str, ...], Callable[[str], tuple[SmiCard, ...]]] = {
    QUERY: _from_csv,
    XML: _from_xml,
    LIST: _from_list,
    PLAIN: _no_cards,
}


def bus_address(text: str) -> str:
    """`00000000:0C:00.0` as sysfs writes it, `0000:0c:00.0`; empty for `N/A`."""
    parts = re.fullmatch(r"([0-9a-fA-F]{4,8}):([0-9a-fA-F]{2}:[0-9a-fA-F]{2}\.[0-7])", text.strip())
    return f"{int(parts[1], 16):04x}:{parts[2].lower()}" if parts else ""


def mebibytes(text: str) -> Fact[int]:
    """`24564` or `24564 MiB` in bytes; a card that computes in the machine's memory answers `[N/A]`."""
    parts = re.fullmatch(r"(\d+)(?: MiB)?", text.strip())
    if parts:
        return Known(int(parts[1]) * _MIB, "nvidia-smi")
    return Unknown(f"nvidia-smi answers {text.strip() or 'nothing'}")


def _arch(capability: str) -> Fact[str]:
    parts = re.fullmatch(r"(\d+)\.(\d+)", capability)
    if parts:
        return Known(f"sm_{parts[1]}{parts[2]}", "nvidia-smi compute_cap")
    return Unknown(f"nvidia-smi answers {capability or 'nothing'} for compute_cap")
