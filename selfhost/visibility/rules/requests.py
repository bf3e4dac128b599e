"""Docker's own request for devices: its driver, its count and ids, its capabilities."""

from collections.abc import Iterator

from selfhost.shapes.finding import RunOn, Severity
from selfhost.shapes.host import Host
from selfhost.shapes.workload import DeviceRequest, Workload
from selfhost.visibility import paste
from selfhost.visibility.engines import engine_of_host, version
from selfhost.visibility.paste_options import options
from selfhost.visibility.rule import Found, place, rule

COMPOSE_SPEC = "https://docs.docker.com/reference/compose-file/deploy/#devices"
MOBY = "https://github.com/moby/moby/blob/master/daemon/devices.go"
NO_COUNT = "https://github.com/docker/docs/issues/21026"
RESTART = "sudo systemctl restart docker"
DRIVERS = ("nvidia", "cdi", "amd", "nvidia.cdi", "nvidia.runtime-hook")
FIRST_VOID = (27, 3)
"""From here a request for nothing injects nothing, without an error; before, the image's own `all` stayed."""
COMPOSE_FILLS = (28,)
"""Engines of this age come with a Compose that writes `count: all` where a file says neither."""


def _requests(workload: Workload) -> Iterator[tuple[str, DeviceRequest]]:
    for number, request in enumerate(workload.requests):
        yield request.key or f"requests.{number}", request


def _is_dynamic(*texts: str) -> bool:
    return any("$" in text or "{{" in text for text in texts)


@rule("DV011", Severity.ERROR, source=MOBY)
def unknown_driver(workload: Workload, host: Host | None) -> Iterator[Found]:
    del host
    for key, request in _requests(workload):
        driver = request.driver
        if driver and driver not in DRIVERS and not _is_dynamic(driver):
            yield Found(
                title=f"docker has no device driver called {driver}",
                place=place(workload, f"{key}.driver"),
                evidence=f"driver: {driver}",
                why=f"A request names one of {', '.join(DRIVERS)}; for any other the daemon answers "
                f'`could not select device driver "{driver}"`. A CDI name such as nvidia.com/gpu is no driver.',
                fix=("write `driver: nvidia`, or `driver: cdi` with full CDI names as device_ids",),
            )


@rule("DV011b", Severity.ERROR, source="https://github.com/NixOS/nixpkgs/issues/353059")
def only_cdi_here(workload: Workload, host: Host | None) -> Iterator[Found]:
    engine = engine_of_host(workload, host)
    if engine is None or "nvidia:gpus" in engine.injects or "nvidia" in engine.runtimes:
        return
    offered = [name for name in engine.cdi_devices if name.startswith("nvidia.com/gpu=")]
    for key, request in _requests(workload):
        if offered and request.driver in ("", "nvidia", "nvidia.runtime-hook"):
            yield Found(
                title=f"{workload.label} asks for a driver that this daemon lacks; it hands out cards by CDI only",
                place=place(workload, key),
                evidence=f"docker offers {', '.join(offered[:3])} and no runtime nvidia",
                why="The request needs NVIDIA's hook in the daemon's path. Where only CDI is set up, as on NixOS, the "
                'answer is `could not select device driver "" with capabilities: [[gpu]]`.',
                fix=(f"ask by CDI name instead:\n{options(workload, ('--device', 'nvidia.com/gpu=all'))}",),
            )


@rule("DV012", Severity.ERROR, source=MOBY)
def count_and_ids(workload: Workload, host: Host | None) -> Iterator[Found]:
    del host
    for key, request in _requests(workload):
        if request.count is None or not request.ids:
            continue
        ids = ",".join(request.ids)
        split = request.spelling == "--gpus"
        yield Found(
            title=f"{workload.label} asks for a count and for ids at once",
            place=place(workload, key),
            evidence=f"count {request.count} · device_ids {ids}",
            why="The daemon refuses: `cannot set both Count and DeviceIDs on device request`."
            + (" The shell took the quotes, so docker reads `1` behind the comma as a count." if split else ""),
            fix=(
                f"quote twice, so that the list stays one value:\n--gpus '\"device={ids},{request.count}\"'"
                if split
                else "keep device_ids and remove count",
            ),
        )


@rule("DV013", Severity.ERROR, source=COMPOSE_SPEC)
def no_capabilities(workload: Workload, host: Host | None) -> Iterator[Found]:
    del host
    for key, request in _requests(workload):
        if request.spelling == "deploy" and not request.capabilities:
            yield Found(
                title=f"{workload.label} reserves a device without saying `capabilities`",
                place=place(workload, key),
                evidence="no `capabilities: [gpu]` in the reservation",
                why="Compose asks for it in every reservation and refuses the file without it.",
                fix=("add to the reservation:\ncapabilities: [gpu]",),
            )


@rule("DV014", Severity.WARNING, source=NO_COUNT)
def neither_count_nor_ids(workload: Workload, host: Host | None) -> Iterator[Found]:
    engine = engine_of_host(workload, host)
    age = version(engine) if engine else ()
    for key, request in _requests(workload):
        if request.ids or (request.count or 0) != 0 or (request.driver and request.driver not in DRIVERS):
            continue
        if any(text.startswith((key, request.spelling or key)) for text in workload.opaque):
            continue  # the number is a variable's
        zero = request.count == 0
        certain = (zero and age >= FIRST_VOID) or (FIRST_VOID <= age < COMPOSE_FILLS)
        said = f"{request.spelling or 'count'} 0" if zero else "neither count nor device_ids"
        yield Found(
            title=f"{workload.label} asks for {'0 devices' if zero else 'devices without saying how many'}",
            place=place(workload, key),
            evidence=said + (f" · docker {engine.version}" if engine and engine.version else ""),
            why="A number behind --gpus is a count, not a card: with 0 nothing is let in and nothing is said."
            if zero
            else "Some versions of Compose take this for all cards, others for none, and the engine reports no error "
            "either way.",
            fix=(f"say it:\n{paste.all_cards(workload)}",),
            severity=Severity.ERROR if certain else None,
        )


@rule(
    "DV024",
    Severity.ERROR,
    source="https://github.com/NVIDIA/cloud-native-docs/blob/main/container-toolkit/cdi-support.md",
)
def two_injectors(workload: Workload, host: Host | None) -> Iterator[Found]:
    del host
    names = [name for name in workload.cdi if name.kind == "nvidia.com/gpu"]
    hooks = [key for key, request in _requests(workload) if request.driver in ("", "nvidia", "nvidia.runtime-hook")]
    if names and hooks:
        yield Found(
            title=f"{workload.label} lets NVIDIA cards in twice: by request and by CDI",
            place=place(workload, names[0].key or "cdi.0"),
            evidence=f"{names[0].kind}={names[0].name} beside a request of docker",
            why="Both inject the driver's files and nodes. What the container gets is the union, and mounts of the one "
            "fail over those of the other.",
            fix=("keep one of the two; CDI outlives `systemctl daemon-reload`",),
        )


@rule(
    "DV078",
    Severity.WARNING,
    source="https://docs.nvidia.com/datacenter/cloud-native/container-toolkit/latest/install-guide.html",
)
def runtime_not_registered(workload: Workload, host: Host | None) -> Iterator[Found]:
    engine = engine_of_host(workload, host)
    if workload.runtime not in ("nvidia", "amd") or engine is None or engine.kind != "docker" or not engine.runtimes:
        return
    if workload.runtime in engine.runtimes:
        return
    tool = {"nvidia": "nvidia-ctk", "amd": "amd-ctk"}[workload.runtime]
    yield Found(
        title=f"docker here knows no runtime {workload.runtime}",
        place=place(workload, "runtime"),
        evidence=f"runtimes of docker {engine.version}: {', '.join(engine.runtimes)}",
        why=f"The container will not start: `unknown or invalid runtime name: {workload.runtime}`.",
        fix=(f"register it and restart docker:\nsudo {tool} runtime configure --runtime=docker\n{RESTART}",),
        run_on=RunOn.CONTAINER_HOST,
    )
