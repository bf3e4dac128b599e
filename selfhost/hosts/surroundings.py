"""Everything around the cards that decides whether a container or a process gets to use them, asked once."""

from collections.abc import Callable, Sequence
from dataclasses import replace

from selfhost.core.system import System
from selfhost.hosts import cdi, cgroup, cluster, container_engines, fabric, identity, kernel, memory, toolkit
from selfhost.hosts.engine_injects import injects, is_local
from selfhost.hosts.engine_questions import Said, ask
from selfhost.hosts.vendors import amd, intel, nvidia
from selfhost.shapes.host import Accelerator, Link, PciDevice
from selfhost.shapes.surroundings import CdiSpec, DriverStack, Engine, Surroundings

# A new vendor is an entry in each.
STACKS: tuple[Callable[[System, Sequence[Accelerator]], DriverStack | None], ...] = (
    nvidia.stack,
    amd.stack,
    intel.stack,
)
TOPOLOGIES: tuple[Callable[[System, Sequence[Accelerator]], tuple[Link, ...]], ...] = (
    nvidia.topology,
    amd.topology,
    intel.topology,
)


def read(
    system: System,
    cards: Sequence[Accelerator],
    pci: Sequence[PciDevice],
    said: Sequence[Said] | None = None,
    *,
    containers: bool = False,
) -> Surroundings:
    """`said`: what the engines answered, when they were asked before, beside the vendors' tools."""
    engines = container_engines.read(system, ask(system) if said is None else said, containers=containers)
    specs = cdi.read(system, (path for engine in engines if is_local(engine) for path in engine.cdi_dirs))
    uid, groups = identity.user(system)
    nodes, objects = cluster.read(system)
    count = fabric.switches(system)
    return Surroundings(
        drivers=tuple(stack for read_stack in STACKS if (stack := read_stack(system, cards)) is not None),
        engines=_injecting(system, engines, specs),
        cdi=specs,
        toolkits=toolkit.read(system, cards, tuple(name for engine in engines for name in engine.runtimes)),
        uid=uid,
        groups=groups,
        user_namespace=kernel.user_namespace(system),
        kernel_arguments=kernel.arguments(system),
        iommu=kernel.iommu(system, _addresses(cards, pci)),
        selinux=kernel.selinux(system),
        apparmor=kernel.apparmor(system),
        dev_char_missing=kernel.dev_char_missing(system),
        nvswitches=count,
        fabric_manager=fabric.manager(system, cards, count),
        shm_bytes=identity.shared_memory(system),
        memlock_bytes=identity.locked_memory(system),
        nodes=nodes,
        objects=objects,
        swap_bytes=memory.swap(system),
        pids_limit=cgroup.pids_limit(system),
    )


def topology(system: System, cards: Sequence[Accelerator]) -> tuple[Link, ...]:
    return tuple(link for read_links in TOPOLOGIES for link in read_links(system, cards))


def _injecting(system: System, engines: Sequence[Engine], specs: Sequence[CdiSpec]) -> tuple[Engine, ...]:
    return tuple(replace(engine, injects=injects(system, engine, specs)) for engine in engines)


def _addresses(cards: Sequence[Accelerator], pci: Sequence[PciDevice]) -> tuple[str, ...]:
    """Of cards that compute; where no card was made out, of every function that could be one."""
    own = tuple(card.pci for card in cards if card.pci and not card.integrated)
    return own or tuple(device.address for device in pci)
