"""What is around the cards as a person reads it: drivers, toolkits, container engines, limits."""

from collections.abc import Iterator

from selfhost.shapes.host import Fact, Host, Known, Unknown, Vendor
from selfhost.shapes.surroundings import DriverStack, Engine, Surroundings
from selfhost.shapes.units import format_bytes

_VENDORS = {Vendor.NVIDIA: "NVIDIA", Vendor.AMD: "AMD", Vendor.INTEL: "Intel", Vendor.OTHER: "other"}
_WAYS = {
    "nvidia:gpus": "--gpus",
    "nvidia:runtime": "runtime nvidia",
    "nvidia:cdi": "NVIDIA by CDI",
    "amd:runtime": "runtime amd",
    "amd:cdi": "AMD by CDI",
    "intel:cdi": "Intel by CDI",
    "nodes": "device nodes",
}


def drivers(host: Host) -> Iterator[tuple[str, str]]:
    """Label and text, one line a vendor."""
    around = host.surroundings
    for stack in around.drivers if around else ():
        yield "Driver", " · ".join(_driver(stack))
    if (around is None or not around.drivers) and isinstance(host.driver, Known):
        yield "Driver", f"NVIDIA {host.driver.value}"


def _driver(stack: DriverStack) -> Iterator[str]:
    module = stack.module.value if isinstance(stack.module, Known) else "not loaded"
    flavour = f" ({stack.flavour})" if stack.flavour and stack.flavour not in module else ""
    yield f"{_VENDORS[stack.vendor]} {module}{flavour}"
    if isinstance(stack.library, Known) and isinstance(stack.module, Known):
        same = stack.library.value == stack.module.value
        yield "module and library agree" if same else f"library {stack.library.value}"
    if isinstance(stack.cuda, Known):
        yield f"CUDA up to {stack.cuda.value}"
    if stack.failure:
        yield stack.failure


def engines(around: Surroundings) -> Iterator[tuple[str, str]]:
    for toolkit in around.toolkits:
        version = f" {toolkit.version.value}" if isinstance(toolkit.version, Known) else ""
        specs = [spec for spec in around.cdi if spec.kind.startswith(toolkit.vendor.value)]
        stale = any(spec.missing or spec.stale or spec.fault for spec in specs)
        cdi = " · CDI specification " + ("out of date" if stale else "current") if specs else ""
        yield "Toolkit", f"{toolkit.vendor.value}-container-toolkit{version}{cdi}"
    if around.engines:
        yield "Engines", " · ".join(_engine(engine) for engine in around.engines)


def _engine(engine: Engine) -> str:
    notes = [word for word, true in (("rootless", _yes(engine.rootless)), ("snap", engine.snap)) if true]
    notes += ["Desktop"] if engine.desktop else []
    notes += [f"at {engine.remote}"] if engine.remote else []
    notes += ["of the machine around this container"] if engine.sibling else []
    if isinstance(engine.answers, Known) and not engine.answers.value:
        notes.append("does not answer")
    elif isinstance(engine.answers, Unknown):
        notes.append(engine.answers.reason)
    else:
        ways = [_WAYS.get(way, way) for way in engine.injects]
        notes.append(f"hands in {', '.join(ways)}" if ways else "hands in nothing that was seen")
    return f"{engine.kind.capitalize()} {engine.version}".rstrip() + f" ({', '.join(notes)})"


def _yes(fact: Fact[bool]) -> bool:
    return isinstance(fact, Known) and fact.value


def limits(host: Host) -> Iterator[tuple[str, str]]:
    """Only where something is smaller than the machine."""
    total, limit = host.memory.total, host.memory.limit
    if isinstance(total, Known) and isinstance(limit, Known) and limit.value < total.value:
        yield "Memory", f"{format_bytes(total.value)} in the machine, {format_bytes(limit.value)} for us ({limit.how})"
