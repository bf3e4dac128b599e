"""What a plan says about the engine, its environment and its image."""

import re

from selfhost.engines import builds
from selfhost.engines.names import shown
from selfhost.hosts.engine_support import driver_floor
from selfhost.hosts.placement import BACKENDS
from selfhost.plan.devices import Devices
from selfhost.plan.origin import by
from selfhost.shapes.host import Host, Known, Support
from selfhost.shapes.plan import Decision, EngineBuild, Evidence, Image
from selfhost.shapes.service import Service
from selfhost.shapes.units import format_bytes

UNVERIFIED = "unverified version"
_GGUF = "llama.cpp with a GGUF of the model"
_NEVER = "the build for this accelerator, never run on one by us"
_PLAY = re.compile(r"GeForce|TITAN", re.IGNORECASE)
_NATIVE_CUDA_12_9 = 575
"""The driver branch that came with CUDA 12.9 (https://docs.nvidia.com/deploy/cuda-compatibility/)."""
_COMPATIBLE = (535, 570)
"""Driver branches for which CUDA 13's compatibility libraries work, on professional cards only."""


def engine_decision(
    build: EngineBuild,
    *,
    host: Host,
    devices: Devices,
    service: Service,
    note: str,
    source: str,
    others: tuple[str, ...],
    gguf: bool,
) -> Decision:
    """`note` and `source` are those of the card, `others` engines that compute on it too."""
    reasons = [_backend(build, devices), _line(build, host), note, _unverified(build)]
    evidence, known = (
        (Evidence.SEEN_ELSEWHERE, "started and checked by selfhost's own tests")
        if build.backend == "cpu"
        else (Evidence.READ_IN_CODE, "never run by us")
    )
    if not build.verified:
        evidence, known = Evidence.ASSUMED, UNVERIFIED
    return Decision(
        field="engine",
        value=f"{shown(build.engine)} {build.version}",
        reason="; ".join(reason for reason in reasons if reason),
        source="; ".join(dict.fromkeys((build.source, source))),
        evidence=evidence,
        evidence_note=known,
        by=by(service, "engine", service.engine),
        alternatives=(
            *_newer(build, host, devices),
            *(shown(other) for other in others),
            *((_GGUF,) if gguf else _for_unused_cards(host, devices)),
        ),
    )


def environment_decision(build: EngineBuild) -> Decision:
    """The managed environment that a process runs from."""
    beside = (
        f"; without nvcc FlashInfer's kernels need {', '.join(build.kernels)} from {build.kernels_index} in it"
        if build.kernels
        else ""
    )
    return Decision(
        field="environment",
        value=f"{build.distribution}=={build.version}",
        reason="a managed environment of its own, "
        f"{format_bytes(build.installed_bytes)}, Python {build.python}, shared by deployments{beside}",
        source=build.source,
        evidence=Evidence.SEEN_ELSEWHERE if build.constraints else Evidence.ASSUMED,
        evidence_note="size as measured" if build.constraints else "size estimated",
    )


def image_decision(image: Image) -> Decision:
    """The image, with its tag only where one was read."""
    command = f"; it starts no server by itself: `{' '.join(image.command)}`" if image.command else ""
    user = f"; without root: --user {image.user}" if image.user else ""
    tag = (
        f"of {image.version}, {image.toolkit}"
        if image.tag
        else f"the tag is looked up when it is pulled, by the project's rule {image.tag_pattern}; "
        f"the newest one seen is {image.newest_read}"
    )
    return Decision(
        field="image",
        value=image.reference,
        reason=f"{tag}{command}{user}",
        source=image.source,
        evidence=Evidence.SEEN_ELSEWHERE if image.tag else Evidence.ASSUMED,
        evidence_note="" if image.tag else "no tag of this version was read anywhere",
    )


def _backend(build: EngineBuild, devices: Devices) -> str:
    if build.backend == "cpu":
        return "no accelerator is used, so its CPU build"
    card = devices.cards[0]
    arch = card.arch.value if isinstance(card.arch, Known) else "an unknown architecture"
    said = f"for {arch}, {build.toolkit}" if build.toolkit else f"for {arch}"
    return f"{said}; {_NEVER}"


def _line(build: EngineBuild, host: Host) -> str:
    """Why it is not the newest."""
    if not build.line or not isinstance(host.driver, Known):
        return ""
    branch = builds.numbers(host.driver.value)[0]
    how = ", by CUDA's minor-version compatibility" if branch < _NATIVE_CUDA_12_9 else ""
    return f"the last line for driver {host.driver.value}{how}; newer ones need {driver_floor()} or later"


def _unverified(build: EngineBuild) -> str:
    if build.verified:
        return ""
    newest = builds.choose(backend=build.backend, asked=build.engine)
    return f"{UNVERIFIED}: newer than {newest.version}, whose flags and figures are used; the engine parses them itself"


def _newer(build: EngineBuild, host: Host, devices: Devices) -> tuple[str, ...]:
    if not build.line or not isinstance(host.driver, Known):
        return ()
    newest = builds.choose(backend=build.backend, asked=build.engine)
    name = f"{shown(newest.engine)} {newest.version}"
    ways = [f"{name} after the driver is updated to {newest.driver_floor} or later"]
    branch = builds.numbers(host.driver.value)[0]
    if build.engine == "vllm" and branch in _COMPATIBLE and not _PLAY.search(devices.name):
        ways.append(f"{name} in its image with VLLM_ENABLE_CUDA_COMPATIBILITY=1")
    return tuple(ways)


def _for_unused_cards(host: Host, devices: Devices) -> tuple[str, ...]:
    """A card that no engine has code for is one that llama.cpp computes on."""
    if devices.cards:
        return ()
    left = [card.name for card in host.accelerators if card.support is Support.UNSUPPORTED and card.vendor in BACKENDS]
    return (f"{_GGUF} on {left[0]}",) if left else ()
