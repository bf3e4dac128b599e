"""The kernel module, the library beside it, the CUDA or ROCm that they run, and the cards that they drive."""

import re
from collections.abc import Iterator

from selfhost.core.table import read_table
from selfhost.doctor.area import Seen, area, driver_place
from selfhost.hosts.obstacle import version
from selfhost.shapes.finding import Finding, Severity
from selfhost.shapes.host import Accelerator, Known, Vendor
from selfhost.shapes.surroundings import DriverStack

_KEEP_NOUVEAU_OUT = (
    "printf 'blacklist nouveau\\noptions nouveau modeset=0\\n' | sudo tee /etc/modprobe.d/blacklist-nouveau.conf\n"
    "sudo update-initramfs -u || sudo dracut --force"
)
_RESTART = "restart the machine, so that the module of the new version is loaded"


@area("driver", order=10)
def driver(seen: Seen) -> None:
    needing = {card.vendor for card in seen.candidates if card.kernel_driver != "vfio-pci"}
    if not seen.host.accelerators:
        seen.calm = "none needed"
        return
    around = seen.host.surroundings
    if around is None:
        seen.unknowns.append("the driver stack was not looked at")
        return
    for stack in around.drivers:
        seen.findings.extend(_mismatch(seen, stack))
        seen.findings.extend(_rocm(seen, stack))
        seen.findings.extend(_branch(seen, stack))
    seen.findings.extend(_not_loaded(seen))
    seen.calm = ", ".join(_said(stack) for stack in around.drivers if isinstance(stack.module, Known))
    if not needing and not seen.calm:
        seen.calm = "none needed"
    elif not around.drivers:
        seen.unknowns.append("no driver of a known vendor was found")
    if not seen.findings:
        seen.unknowns.extend(
            f"{stack.vendor.value}: {stack.module.reason}"
            for stack in around.drivers
            if not isinstance(stack.module, Known) and stack.vendor in needing
        )


def _said(stack: DriverStack) -> str:
    module = stack.module.value if isinstance(stack.module, Known) else "unknown"
    cuda = f", CUDA {stack.cuda.value}" if isinstance(stack.cuda, Known) else ""
    flavour = f" ({stack.flavour})" if stack.flavour else ""
    return f"{stack.vendor.value} {module}{flavour}{cuda}"


def _mismatch(seen: Seen, stack: DriverStack) -> Iterator[Finding]:
    """Not on WSL2: the module there is of Windows and numbered by itself."""
    if stack.vendor is not Vendor.NVIDIA or "wsl2" in seen.labels or stack.flavour == "windows":
        return
    module, library = stack.module, stack.library
    if not (isinstance(module, Known) and isinstance(library, Known)) or module.value == library.value:
        return
    yield Finding(
        id="HX003",
        severity=Severity.ERROR,
        title=f"the NVIDIA module is {module.value}, its library is {library.value}",
        evidence=f"{module.how}: {module.value}\n{library.how}: {library.value}",
        why="Layer: driver. Module and library of one driver only work together when all three numbers are equal.",
        fix=(f"{_RESTART}:\nsudo reboot", "or install the library of the module's version"),
        run_on=driver_place(seen.labels),
        source="https://docs.nvidia.com/deploy/cuda-compatibility/",
    )


def _capability(card: Accelerator) -> int:
    """`sm_120` as 120; 0 where it is unknown."""
    found = re.fullmatch(r"sm_(\d+)", card.arch.value) if isinstance(card.arch, Known) else None
    return int(found[1]) if found else 0


def _branch(seen: Seen, stack: DriverStack) -> Iterator[Finding]:
    """Which branches and which module drive a generation, by the table."""
    if stack.vendor is not Vendor.NVIDIA or not isinstance(stack.module, Known) or stack.flavour == "windows":
        return
    major = version(stack.module.value)[:1]
    for row in read_table("selfhost.doctor", "generations.toml")["nvidia"]["rows"]:
        cards = [
            card
            for card in seen.host.accelerators
            if card.vendor is Vendor.NVIDIA and row["from"] <= _capability(card) <= row["to"]
        ]
        if not cards:
            continue
        known = {"row": row, "card": cards[0], "module": stack.module.value}
        if "first" in row and major < (row["first"],):
            yield _unfit("HX014", f"{cards[0].name} needs driver {row['first']} or later", seen, **known)
        if "last" in row and major > (row["last"],):
            yield _unfit("HX015", f"{cards[0].name} is driven by branch {row['last']} at the latest", seen, **known)
        if row["open"] == "must" and stack.flavour == "proprietary":
            yield _unfit("HX013", f"{cards[0].name} needs the open kernel module", seen, **known)
        if row["open"] == "never" and stack.flavour == "open":
            yield _unfit("HX016", f"the open kernel module does not drive {cards[0].name}", seen, **known)


def _unfit(id: str, title: str, seen: Seen, *, row: dict[str, object], card: Accelerator, module: str) -> Finding:
    return Finding(
        id=id,
        severity=Severity.ERROR if card in seen.candidates else Severity.WARNING,
        title=title,
        evidence=f"{card.pci or card.name}: {row['name']}; driver {module}",
        why=f"Layer: driver. {row['why']}",
        fix=(str(row["fix"]),),
        run_on=driver_place(seen.labels),
        source=str(row["source"]),
    )


def _rocm(seen: Seen, stack: DriverStack) -> Iterator[Finding]:
    if stack.vendor is not Vendor.AMD or not (isinstance(stack.module, Known) and isinstance(stack.library, Known)):
        return
    # Before 30 the module's own number and the release it came with look alike and mean different things.
    branch = version(stack.module.value)[:2]
    user = version(stack.library.value)[:2]
    for row in read_table("selfhost.doctor", "rocm.toml")["kernel"]["rows"]:
        if branch != tuple(row["branch"]) or tuple(row["oldest"]) <= user <= tuple(row["newest"]):
            continue
        yield Finding(
            id="HX020",
            severity=Severity.WARNING,
            title=f"amdgpu {stack.module.value} is not tested with ROCm {stack.library.value}",
            evidence=f"{stack.module.how}: {stack.module.value}\n{stack.library.how}: {stack.library.value}",
            why=f"Layer: driver. This kernel driver goes with ROCm {row['says']}.",
            fix=(f"use an image or packages of ROCm {row['says']}, or update the kernel driver",),
            run_on=driver_place(seen.labels),
            source=row["source"],
        )


def _installed(seen: Seen) -> str:
    """Ubuntu's own command, where it is Ubuntu."""
    own = "sudo ubuntu-drivers install\n" if "ubuntu" in seen.host.os.lower() else ""
    return own + _KEEP_NOUVEAU_OUT


def _not_loaded(seen: Seen) -> Iterator[Finding]:
    """Why no NVIDIA module is loaded, where the kernel tells."""
    bare = [card for card in seen.candidates if card.vendor is Vendor.NVIDIA and card.kernel_driver != "nvidia"]
    if not bare or isinstance(seen.host.driver, Known) or "wsl2" in seen.labels:
        return
    where = driver_place(seen.labels)
    card = bare[0]
    if card.kernel_driver == "nouveau":
        yield Finding(
            id="HX010",
            severity=Severity.ERROR,
            title=f"{card.name} is bound to nouveau",
            evidence=f"{card.pci}: {card.kernel_driver}",
            why="Layer: driver. nouveau drives screens; no engine computes on it, and it keeps NVIDIA's module out.",
            fix=(f"install NVIDIA's driver, keep nouveau out, and restart the machine:\n{_installed(seen)}",),
            run_on=where,
            source="https://docs.nvidia.com/datacenter/tesla/driver-installation-guide/",
        )
    dkms = seen.look.dkms.value if isinstance(seen.look.dkms, Known) else ""
    rows = [line for line in dkms.splitlines() if line.startswith("nvidia")]
    if rows and not any(seen.host.kernel in line and "installed" in line for line in rows):
        yield Finding(
            id="HX012",
            severity=Severity.ERROR,
            title=f"the NVIDIA module is not built for kernel {seen.host.kernel}",
            evidence="\n".join(rows),
            why="Layer: driver. The module is built anew for every kernel; for the one that runs this did not happen.",
            fix=("build it, and read why it failed if it fails:\nsudo dkms autoinstall\nsudo modprobe nvidia",),
            run_on=where,
            source="https://github.com/dell/dkms",
        )
        return
    if rows and seen.look.lockdown in ("integrity", "confidentiality"):
        yield Finding(
            id="HX011",
            severity=Severity.ERROR,
            title="Secure Boot keeps an unsigned NVIDIA module out",
            evidence=f"/sys/kernel/security/lockdown: {seen.look.lockdown}\n" + "\n".join(rows),
            why="Layer: driver. The module is built and not loaded, and this kernel only loads signed modules.",
            fix=("enrol its key, then restart and confirm it:\nsudo mokutil --import /var/lib/dkms/mok.pub",),
            run_on=where,
            source="https://wiki.debian.org/SecureBoot",
        )
