"""`nvidia-smi --query-gpu=… --format=csv`: any fields in any order, with or without header and units."""

import re
from collections.abc import Mapping, Sequence

from selfhost.hosts.nvidia_reading import (
    NOT_SAID,
    Reading,
    architecture_of,
    bus_address,
    device_id,
    fabric,
    fault_in,
    mebibytes,
    mode,
    number,
    version,
)
from selfhost.shapes.host import Fact, Tenant

# Other names of one field (nvidia-smi --help-query-gpu).
_ALIASES = {
    "gpu_name": "name",
    "gpu_uuid": "uuid",
    "gpu_bus_id": "pci.bus_id",
    "pci.device": "pci.device",
    "used_gpu_memory": "used_memory",
    "gpu_serial": "serial",
    "kmd_version": "kmd_version",
}


def fields_of(argv: Sequence[str], option: str) -> tuple[str, ...]:
    """The field list behind `option` (`--query-gpu`); empty when the command is another one."""
    for place, part in enumerate(argv):
        name, has_value, value = part.partition("=")
        if name == option:
            listed = value if has_value else next(iter(argv[place + 1 : place + 2]), "")
            return tuple(_plain(name) for name in listed.split(",") if name.strip())
    return ()


def rows_of(text: str, fields: Sequence[str]) -> list[Mapping[str, str]]:
    """Each data row by field name. A header, where there is one, decides about names and order.

    A row with another number of cells is a sentence, or was cut off.
    """
    names = list(fields)
    found: list[Mapping[str, str]] = []
    for line in text.splitlines():
        row = _cells(line, names)
        plain = [_plain(cell) for cell in row]
        if _is_header(plain, fields):
            names, found = plain, []  # what stood above it was no row
        elif names and len(row) == len(names) and any(row) and not _is_sentence(row):
            found.append(dict(zip(names, row, strict=True)))
    return found


def _cells(line: str, names: Sequence[str]) -> list[str]:
    """nvidia-smi quotes nothing: a command line with commas in it is put together again."""
    row = [cell.strip() for cell in line.split(",")]
    more = len(row) - len(names)
    if more > 0 and "process_name" in names:
        at = list(names).index("process_name")
        return [*row[:at], ", ".join(row[at : at + more + 1]), *row[at + more + 1 :]]
    return row


def cards(text: str, fields: Sequence[str]) -> tuple[Reading, ...]:
    """One reading a row. Rows without a number are counted: nvidia-smi writes them in the order of its numbers."""
    return tuple(_card(row, position) for position, row in enumerate(rows_of(text, fields)) if not _is_damaged(row))


def tenants(text: str, fields: Sequence[str]) -> list[tuple[str, Tenant]]:
    """Processes of `--query-compute-apps`, each with the uuid or address of its card (empty when it was not asked)."""
    found: list[tuple[str, Tenant]] = []
    for row in rows_of(text, fields):
        if not re.fullmatch(r"\d{1,10}", row.get("pid", ""), re.ASCII):
            continue
        used = row.get("used_memory", "")
        tenant = Tenant(pid=int(row["pid"]), name=row.get("process_name", row.get("name", "")), memory=mebibytes(used))
        found.append((row.get("uuid", "") or bus_address(row.get("pci.bus_id", "")), tenant))
    return found


def _card(row: Mapping[str, str], position: int) -> Reading:
    index = row.get("index", "")
    memory = {name: _memory(row, name) for name in ("memory.total", "memory.free", "memory.used")}
    fault = fault_in(*(row.get(name, "") for name in ("name", "uuid", "pci.bus_id", "memory.total", "memory.used")))
    uuid = row.get("uuid", "")
    return Reading(
        tool="nvidia-smi",
        index=position if number(index) is None else number(index),
        name="" if fault_in(row.get("name", "")) else row.get("name", ""),
        uuid=uuid if uuid.startswith(("GPU-", "MIG-")) else "",
        bus_id=bus_address(row.get("pci.bus_id", "")),
        device_id=device_id(row.get("pci.device_id", "")),
        minor=number(row.get("minor_number", "")),
        memory_total=memory["memory.total"],
        memory_free=memory["memory.free"],
        memory_used=memory["memory.used"],
        arch=architecture_of(row["compute_cap"], "nvidia-smi compute_cap") if "compute_cap" in row else NOT_SAID,
        driver=version(row.get("kmd_version", "")) or version(row.get("driver_version", "")),
        mig=mode(row.get("mig.mode.current", "")),
        fabric=fabric(row.get("fabric.state", ""), row.get("fabric.status", "")),
        fault=fault,
    )


def _is_damaged(row: Mapping[str, str]) -> bool:
    """An index that is no number marks a line that is no row: a warning that happens to have as many commas."""
    return "index" in row and number(row["index"]) is None


def _memory(row: Mapping[str, str], name: str) -> Fact[int]:
    return mebibytes(row[name]) if name in row else NOT_SAID


def _plain(name: str) -> str:
    """`memory.total [MiB]` as it is asked for."""
    bare = re.sub(r"\s*\[[^\]]*\]$", "", name.strip()).strip()
    return _ALIASES.get(bare, bare)


def _is_header(plain: Sequence[str], fields: Sequence[str]) -> bool:
    """Names of fields are lower case throughout; a row has at least a name or a figure."""
    if not plain or not all(re.fullmatch(r"[a-z][a-z0-9_.]*", name) for name in plain):
        return False
    return list(plain) == list(fields) or any(name in _TELLING or "." in name or "_" in name for name in plain)


_TELLING = ("name", "uuid", "index", "pid", "count")


def _is_sentence(row: Sequence[str]) -> bool:
    return row[0].startswith(("NVIDIA-SMI", "Failed", "Unable", "No devices", "Field ", "WARNING", "Warning"))
