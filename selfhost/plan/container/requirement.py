"""The CUDA version that an image asks of the driver, where an older driver of the same CUDA runs it too."""

from dataclasses import replace

from selfhost.core.versions import numbers
from selfhost.plan.container.way import Way
from selfhost.shapes.host import Host, Known
from selfhost.shapes.plan import EngineBuild

_VARIABLE = "NVIDIA_DISABLE_REQUIRE"
_NATIVE = {"cu129": 575}
"""The driver branch that came with the CUDA of a line (https://docs.nvidia.com/deploy/cuda-compatibility/)."""


def older_driver(build: EngineBuild, host: Host) -> bool:
    """Whether CUDA's minor-version compatibility carries it, of which the image's own bound knows nothing."""
    native = _NATIVE.get(build.line)
    return native is not None and isinstance(host.driver, Known) and numbers(host.driver.value) < (native,)


def without_requirement(way: Way) -> Way:
    why = "the image asks for the driver of its own CUDA; an older one of the same major version runs it too"
    injection = replace(way.injection, env={**way.injection.env, _VARIABLE: "1"})
    return replace(way, injection=injection, reasons={**way.reasons, f"env.{_VARIABLE}": why})
