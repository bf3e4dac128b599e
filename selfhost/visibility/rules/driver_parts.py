"""What of NVIDIA's driver comes into the container, and whether it is new enough for the image."""

import re
from collections.abc import Iterator

from selfhost.shapes.finding import RunOn, Severity
from selfhost.shapes.host import Host, Known, Vendor
from selfhost.shapes.workload import Workload
from selfhost.visibility import paste
from selfhost.visibility.images import engine_of, known, split, vendor_of
from selfhost.visibility.nodes import cards
from selfhost.visibility.rule import Found, place, rule

TOOLKIT = "https://docs.nvidia.com/datacenter/cloud-native/container-toolkit/latest/docker-specialized.html"
COMPATIBILITY = "https://docs.nvidia.com/deploy/cuda-compatibility/"
CAPABILITIES, REQUIRE, DISABLE = "NVIDIA_DRIVER_CAPABILITIES", "NVIDIA_REQUIRE_CUDA", "NVIDIA_DISABLE_REQUIRE"
_CUDA_TAG = re.compile(r"(?:^|[-_])(?:cu|cuda)(?P<major>1\d)\.?(?P<minor>\d)\d*(?:$|[-_.])")
_BASE_TAG = re.compile(r"(?P<major>\d+)\.(?P<minor>\d+)\.\d+-")
_DATA_CENTRE = re.compile(
    r"\b(?:Tesla|A2|A10G?|A16|A30|A40|A[18]00|G?B[123]00|GH200|H[128]00|H20|L4|L20|L40S?|P4|P40|P100|T4|V100)\b"
)


@rule("DV035", Severity.WARNING, source=TOOLKIT)
def driver_without_compute(workload: Workload, host: Host | None) -> Iterator[Found]:
    del host
    text = workload.env.get(CAPABILITIES, "")
    named = {part.strip() for part in text.split(",") if part.strip()}
    if not named or "all" in named or "$" in text or not _computes(workload):
        return
    lacking = [name for name in ("compute", "utility") if name not in named]
    if lacking:
        missing = {"compute": "libcuda.so.1", "utility": "nvidia-smi and libnvidia-ml.so.1"}
        yield Found(
            title=f"{CAPABILITIES} leaves out {' and '.join(lacking)}",
            place=place(workload, f"env.{CAPABILITIES}"),
            evidence=f"{CAPABILITIES}={text}",
            why=f"Only what is named comes in: {' and '.join(missing[name] for name in lacking)} will be missing, and "
            "an engine needs both.",
            fix=(f"name both:\n{paste.variable(workload, CAPABILITIES, 'compute,utility')}",),
        )


def _computes(workload: Workload) -> bool:
    """An engine, or an image for computing; a player of videos or a desktop needs other parts."""
    image = known(workload.image) if workload.image else None
    return engine_of(workload) is not None or (image is not None and image.vendor is Vendor.NVIDIA)


@rule("DV036", Severity.ERROR, source=COMPATIBILITY)
def image_newer_than_driver(workload: Workload, host: Host | None) -> Iterator[Found]:
    here = cards(host, Vendor.NVIDIA)
    have = _driver_cuda(host)
    want = _wanted(workload)
    if not here or have is None or want is None or have >= want[0] or _is_waived(workload):
        return
    if all(_DATA_CENTRE.search(card.name) for card in here):
        return  # CUDA's compatibility package runs there on an older driver
    bound, key, said = want
    yield Found(
        title=f"{workload.label} needs a driver for CUDA {_dotted(bound)}; this one goes up to {_dotted(have)}",
        place=place(workload, key),
        evidence=f"{said} · {here[0].name}, driver for CUDA {_dotted(have)}",
        why="The toolkit compares before it starts the container: `requirement error: unsatisfied condition: "
        f"cuda>={_dotted(bound)}`. The way round it, CUDA's compatibility libraries, is for data-centre cards only.",
        fix=(
            "install a newer driver on the machine",
            f"or take an image built for CUDA {_dotted(have)} or older",
        ),
        run_on=RunOn.CONTAINER_HOST,
    )


def _driver_cuda(host: Host | None) -> tuple[int, int] | None:
    stacks = host.surroundings.drivers if host and host.surroundings else ()
    for stack in stacks:
        if stack.vendor is Vendor.NVIDIA and isinstance(stack.cuda, Known):
            return _pair(stack.cuda.value)
    return None


def _pair(text: str) -> tuple[int, int] | None:
    match = re.match(r"(\d+)\.(\d+)", text)
    return (int(match[1]), int(match[2])) if match else None


def _wanted(workload: Workload) -> tuple[tuple[int, int], str, str] | None:
    """The lowest CUDA that the image lets itself be started on: its own words, else its tag (same major)."""
    text = workload.env.get(REQUIRE, "")
    match = re.search(r"cuda>=(\d+)\.(\d+)", text)
    if match:
        return (int(match[1]), int(match[2])), f"env.{REQUIRE}", f"{REQUIRE}={match[0]}"
    tag = split(workload.image)[1] if vendor_of(workload.image) is Vendor.NVIDIA else ""
    pattern = _BASE_TAG if split(workload.image)[0].endswith("nvidia/cuda") else _CUDA_TAG
    found = pattern.search(tag)
    return ((int(found["major"]), int(found["minor"])), "image", f"image {workload.image}") if found else None


def _is_waived(workload: Workload) -> bool:
    return workload.env.get(DISABLE, "").lower() in ("true", "1") or REQUIRE in workload.env_sources


def _dotted(pair: tuple[int, int]) -> str:
    return f"{pair[0]}.{pair[1]}"


@rule("DV036b", Severity.WARNING, source="https://github.com/NVIDIA/nvidia-container-toolkit/issues/152")
def waiver_misspelt(workload: Workload, host: Host | None) -> Iterator[Found]:
    del host
    for name in workload.env:
        if name != DISABLE and name.startswith("NVIDIA_DISABLE_REQ"):
            yield Found(
                title=f"{name} does nothing; the variable is {DISABLE}",
                place=place(workload, f"env.{name}"),
                evidence=f"{name}={workload.env[name]}",
                why="The toolkit reads one exact name. With another the image's own demand on the driver stays.",
                fix=(f"write it so:\n{paste.variable(workload, DISABLE, 'true')}",),
            )
