"""A Host as a person reads it."""

from collections.abc import Iterator

from selfhost.cli._around import drivers, engines, limits
from selfhost.core.columns import columns
from selfhost.core.terminal import Terminal
from selfhost.hosts.placement import refusal
from selfhost.shapes.host import Accelerator, Fact, Host, Known, Partitioning, Support, Unknown
from selfhost.shapes.units import format_bytes

_LABEL = 11


def lines(host: Host, terminal: Terminal) -> Iterator[str]:
    """The machine, its accelerators, and what an engine would run on without one."""
    nesting = " in ".join(layer.label for layer in host.nesting) or "not in a container"
    memory = f"{_bytes(host.memory.limit)} memory, {_bytes(host.memory.available)} available"
    cores = f"{_cores(host)} cores"
    yield _line("Machine", " · ".join((host.os, f"kernel {host.kernel}", cores, memory, nesting)))
    yield from ("", *_cards(host, terminal), "")
    features = ", ".join(host.cpu.features) or "no instruction set that engines care about"
    yield _line("CPU", f"{host.cpu.model} ({host.cpu.architecture}) · {features}")
    around = (*limits(host), *drivers(host), *(engines(host.surroundings) if host.surroundings else ()))
    for label, text in around:
        yield _line(label, text)
    systems = {(disk.total, disk.free): disk for disk in reversed(host.disks)}  # one line a file system
    for disk in reversed(systems.values()):
        yield _line("Disk", f"{disk.path} · {format_bytes(disk.free)} free of {format_bytes(disk.total)}")


def summary(host: Host) -> str:
    total = len(host.accelerators)
    if not total:
        return "no accelerator found; " + _cpu_remark(host)
    started_on = sum(refusal(host, card) is None for card in host.accelerators)
    by_us = " by this version" if started_on < len(host.usable_accelerators) else ""
    return f"{started_on} of {total} {'accelerator' if total == 1 else 'accelerators'} usable{by_us}"


def _cpu_remark(host: Host) -> str:
    unknown = [
        word
        for word, fact in (("cores", host.cpu.cores), ("memory", host.memory.available))
        if isinstance(fact, Unknown)
    ]
    if unknown:
        return f"the CPU's {' and '.join(unknown)} {'is' if unknown == ['memory'] else 'are'} unknown"
    return "the CPU can serve small models"


def _cards(host: Host, terminal: Terminal) -> list[str]:
    if not host.accelerators:
        return ["   no accelerator on the PCI bus" if host.pci else "   no accelerator"]
    head = tuple(terminal.paint("dim", word) for word in ("#", "accelerator", "memory", "arch", "state"))
    rows = [
        (str(card.index), card.name, _memory(card), _text(card.arch), *_state(host, card)) for card in host.accelerators
    ]
    table = [f"   {line}" for line in columns([head, *rows])]
    shown = [table[0]]
    for card, row in zip(host.accelerators, table[1:], strict=True):
        shown += [row, *(f"      {line}" for line in _below(card))]
    return shown


def _below(card: Accelerator) -> Iterator[str]:
    """Its slices and who else is on it."""
    if card.partition_mode and card.partitioning is not Partitioning.NONE and not card.partitions:
        yield f"{card.partitioning.value}: {card.partition_mode}"
    for part in card.partitions:
        size = f" · {format_bytes(part.memory.value)}" if isinstance(part.memory, Known) else ""
        yield f"slice {part.name}{size}{f' · {part.uuid}' if part.uuid else ''}"
    for tenant in card.tenants:
        held = f" holds {format_bytes(tenant.memory.value)}" if isinstance(tenant.memory, Known) else ""
        yield f"in use by {tenant.name} (process {tenant.pid}){held}"


def _state(host: Host, card: Accelerator) -> tuple[str, ...]:
    """What `up` would do with this card, in a clause, and the id of why not."""
    refused = refusal(host, card)
    if refused is not None:
        return refused.short, refused.id
    return ("usable",) if card.support is Support.SUPPORTED else (f"usable, but {card.support_reason}",)


def _memory(card: Accelerator) -> str:
    if isinstance(card.memory_total, Unknown):
        return "the machine's" if card.unified else "unknown"
    free = f", {format_bytes(card.memory_free.value)} free" if isinstance(card.memory_free, Known) else ""
    return format_bytes(card.memory_total.value) + free


def _cores(host: Host) -> str:
    if isinstance(host.cpu.cores, Unknown):
        return str(host.cpu.cores_online or "unknown")
    usable = f"{host.cpu.cores.value:g}"
    online = str(host.cpu.cores_online)
    return usable if usable == online else f"{usable} of {online}"


def _text(fact: Fact[str]) -> str:
    return fact.value if isinstance(fact, Known) else "unknown"


def _bytes(fact: Fact[int]) -> str:
    return format_bytes(fact.value) if isinstance(fact, Known) else f"unknown ({fact.reason})"


def _line(label: str, text: str) -> str:
    return f"{label:<{_LABEL}}{text}"
