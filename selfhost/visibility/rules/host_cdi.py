"""CDI specifications that name what is no longer there, twice, or in a form that the engine does not read."""

from collections import defaultdict
from collections.abc import Iterator
from typing import Final

from selfhost.core.versions import numbers
from selfhost.shapes.finding import Place, Severity
from selfhost.shapes.host import Host, Known
from selfhost.shapes.surroundings import CdiSpec, Engine
from selfhost.visibility.rule import Found, host_rule
from selfhost.visibility.rules.host_layers import around, layers

_CDI = "https://docs.nvidia.com/datacenter/cloud-native/container-toolkit/latest/cdi-support.html"
_MANAGED: Final = ("k8s.", "management.")  # written and read by Kubernetes plugins, under roots of their own


@host_rule("DV027", Severity.ERROR, source="https://github.com/NVIDIA/nvidia-container-toolkit/issues/885")
def specification_is_stale(host: Host) -> Iterator[Found]:
    for spec in around(host).cdi:
        wrong = _wrong(host, spec)
        if wrong:
            yield Found(
                title=f"the CDI specification {spec.file} does not fit this machine",
                place=Place(path=spec.file),
                evidence=wrong,
                why="It was written for another driver, another order of cards or before a node was there. An engine "
                "that follows it stops at the first path that is missing, or hands in the wrong device.",
                fix=_written_again(spec),
            )


def _wrong(host: Host, spec: CdiSpec) -> str:
    if spec.fault:
        return spec.fault
    if spec.kind.startswith(_MANAGED):
        return ""
    said: list[str] = []
    if _is_of_another_driver(host, spec) and isinstance(host.driver, Known):
        said.append(f"it is for driver {spec.driver}, {host.driver.value} is loaded")
    if spec.missing:
        more = f" and {len(spec.missing) - 3} more" if len(spec.missing) > 3 else ""
        said.append(f"not here: {', '.join(spec.missing[:3])}{more}")
    said.extend(spec.stale[:3])
    return "; ".join(said)


def _is_of_another_driver(host: Host, spec: CdiSpec) -> bool:
    """Under WSL2 the library and the driver of Windows have numbers of their own."""
    if not spec.driver or not spec.kind.startswith("nvidia.com/") or "wsl2" in layers(host):
        return False
    return isinstance(host.driver, Known) and numbers(host.driver.value) != numbers(spec.driver)


def _written_again(spec: CdiSpec) -> tuple[str, ...]:
    if spec.kind.startswith("amd.com/"):
        return (f"write it again, and once after every boot:\nsudo amd-ctk cdi generate --output={spec.file}",)
    if spec.kind and not spec.kind.startswith("nvidia.com/"):
        return (f"write {spec.file} again with the tool that made it",)
    return (
        f"write it again, and after every change of the driver:\nsudo nvidia-ctk cdi generate --output={spec.file}",
        "with toolkit 1.18 or newer let it be kept fresh:\nsudo systemctl enable --now nvidia-cdi-refresh.path",
        *(
            ("or let a role do both:\nselfhost prepare --only nvidia_container_toolkit",)
            if spec.file == "/etc/cdi/nvidia.yaml"
            else ()
        ),
    )


@host_rule("DV027b", Severity.WARNING, source=_CDI)
def device_is_defined_twice(host: Host) -> Iterator[Found]:
    files: dict[str, list[str]] = defaultdict(list)
    for spec in around(host).cdi:
        for device in spec.devices:
            if spec.file not in files[device.name]:
                files[device.name].append(spec.file)
    twice: dict[tuple[str, ...], list[str]] = defaultdict(list)
    for name, listed in files.items():
        if len(listed) > 1:
            twice[tuple(listed)].append(name)
    for places, devices in twice.items():
        yield Found(
            title=f"{devices[0]} is defined in {' and in '.join(places)}",
            place=Place(path=places[0]),
            evidence=f"in both: {', '.join(devices[:4])}",
            why="Engines take the one of the folder that comes later, or refuse both when the folder is the same. "
            "One of "
            "them is not kept fresh, so the answer changes with the next driver.",
            fix=(f"keep the file that is written anew at every start and remove the other:\nsudo rm {places[0]}",),
        )


# From which version an engine reads the format 0.7.0 (NVIDIA, cdi-support).
_READS_0_7: Final = {"docker": (26, 1), "podman": (5, 1)}


def reads_only_old_cdi(engine: Engine) -> bool:
    """Whether the engine has CDI, and is older than its format 0.7."""
    known = numbers(engine.version)
    enabled = isinstance(engine.cdi_enabled, Known) and engine.cdi_enabled.value
    return bool(known) and enabled and known < _READS_0_7.get(engine.kind, ()) and not engine.remote


@host_rule("DV027c", Severity.ERROR, source="https://github.com/NVIDIA/cloud-native-docs/issues/419")
def format_is_too_new_for_the_engine(host: Host) -> Iterator[Found]:
    for spec in around(host).cdi:
        if numbers(spec.version) < (0, 7):
            continue
        for engine in around(host).engines:
            names = {device.name for device in spec.devices}
            if reads_only_old_cdi(engine) and not names.intersection(engine.cdi_devices):
                yield Found(
                    title=f"{engine.kind} {engine.version} does not read {spec.file}",
                    place=Place(path=spec.file, object=engine.kind),
                    evidence=f"cdiVersion is {spec.version}",
                    why=f"The format 0.7 came to {engine.kind} with "
                    f"{'.'.join(map(str, _READS_0_7[engine.kind]))}. `nvidia-ctk cdi list` shows the device all the "
                    "same, and the engine says `unresolvable CDI devices`.",
                    fix=(
                        f"install a newer {engine.kind}",
                        (
                            f"or write the file with a toolkit older than 1.19.1:\n"
                            f"sudo nvidia-ctk cdi generate --output={spec.file}"
                        ),
                    ),
                )
