"""What doctor looks at besides detect's facts: why a module is not loaded, names that resolve, proxies."""

from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from typing import Final

from selfhost.core.system import System
from selfhost.hosts.glance import glance
from selfhost.shapes.fact import Fact, Known, Unknown
from selfhost.shapes.host import Host

HUB: Final = "huggingface.co"
REGISTRIES: Final = ("registry-1.docker.io", "ghcr.io", "nvcr.io", "quay.io")
_RESOLVE_TIMEOUT_S: Final = 3.0
_DKMS_TIMEOUT_S: Final = 3.0
_PROXIES: Final = ("http_proxy", "https_proxy", "all_proxy", "no_proxy")


@dataclass(frozen=True, slots=True, kw_only=True)
class Look:
    """Read once; all of it may be unknown."""

    lockdown: str = ""
    """Of the kernel: `none`, `integrity`, `confidentiality`; empty where there is no such file."""
    modules: tuple[str, ...] = ()
    """Loaded kernel modules, by /proc/modules."""
    dkms: Fact[str] = field(default_factory=lambda: Unknown("dkms was not asked"))
    infiniband: bool = False
    names: Mapping[str, Fact[bool]] = field(default_factory=dict)
    """Whether a name resolves."""
    proxies: Mapping[str, str] = field(default_factory=dict)
    """Proxy variables as they are spelled."""
    offline: str = ""
    """The variable that tells the hub's client to stay offline."""
    hub: str = HUB
    outsiders: Mapping[int, str] = field(default_factory=dict)
    """Control group of a process that uses a card and was not started by Kubernetes."""


def look(system: System, host: Host) -> Look:
    """Nothing that is missing or late raises."""
    env = system.env
    hub = _host_of(env.get("HF_ENDPOINT", "")) or HUB
    return Look(
        lockdown=_chosen(glance(system, "/sys/kernel/security/lockdown")),
        modules=tuple(line.split(" ", 1)[0] for line in glance(system, "/proc/modules").splitlines() if line),
        dkms=_dkms(system, host),
        infiniband=_has(system, "/dev/infiniband"),
        names=_names(system, (hub, *REGISTRIES)),
        proxies={name: env[name] for lower in _PROXIES for name in (lower, lower.upper()) if name in env},
        offline=next((n for n in ("HF_HUB_OFFLINE", "TRANSFORMERS_OFFLINE") if env.get(n, "0") not in ("", "0")), ""),
        hub=hub,
        outsiders=_outsiders(system, host),
    )


def _chosen(text: str) -> str:
    """`none [integrity] confidentiality`: the one in brackets."""
    return text.partition("[")[2].partition("]")[0]


def _has(system: System, path: str) -> bool:
    try:
        return bool(system.listdir(path))
    except OSError:
        return False


def _dkms(system: System, host: Host) -> Fact[str]:
    if not host.accelerators:
        return Unknown("no card needs a module")
    done = system.run(("dkms", "status"), timeout_s=_DKMS_TIMEOUT_S)
    if done.missing:
        return Unknown("dkms is not installed")
    return Known(done.stdout, "dkms status") if done.ok else Unknown("dkms gave no answer")


def _names(system: System, names: Sequence[str]) -> dict[str, Fact[bool]]:
    with ThreadPoolExecutor(max_workers=len(names)) as pool:
        return dict(zip(names, pool.map(lambda name: _resolves(system, name), names), strict=True))


def _resolves(system: System, name: str) -> Fact[bool]:
    done = system.run(("getent", "ahosts", name), timeout_s=_RESOLVE_TIMEOUT_S)
    if done.missing:
        return Unknown("there is no getent to ask")
    if done.timed_out:
        return Known(value=False, how=f"no name server answered within {_RESOLVE_TIMEOUT_S:.0f} s")
    return Known(value=done.ok and bool(done.stdout.strip()), how=f"getent ahosts {name}")


def _host_of(url: str) -> str:
    return url.partition("://")[2].partition("/")[0].rpartition("@")[2].partition(":")[0]


def _outsiders(system: System, host: Host) -> dict[int, str]:
    found = {}
    for tenant in (tenant for card in host.accelerators for tenant in card.tenants):
        group = glance(system, f"/proc/{tenant.pid}/cgroup").strip()
        if group and "kubepods" not in group:
            found[tenant.pid] = group
    return found
