"""A running process, by what /proc shows of it → Workload."""

from collections.abc import Mapping, Sequence

from selfhost.core.redact import BLOT, has_token
from selfhost.shapes.workload import Workload

DEVICE_VARIABLES = (
    "AMD_VISIBLE_DEVICES",
    "CUDA_DEVICE_ORDER",
    "CUDA_VISIBLE_DEVICES",
    "GPU_DEVICE_ORDINAL",
    "HABANA_VISIBLE_DEVICES",
    "HIP_VISIBLE_DEVICES",
    "HSA_OVERRIDE_GFX_VERSION",
    "NVIDIA_DISABLE_REQUIRE",
    "NVIDIA_DRIVER_CAPABILITIES",
    "NVIDIA_VISIBLE_DEVICES",
    "ONEAPI_DEVICE_SELECTOR",
    "RAY_EXPERIMENTAL_NOSET_CUDA_VISIBLE_DEVICES",
    "RAY_EXPERIMENTAL_NOSET_HIP_VISIBLE_DEVICES",
    "RAY_EXPERIMENTAL_NOSET_ROCR_VISIBLE_DEVICES",
    "ROCR_VISIBLE_DEVICES",
    "SLURM_JOB_ID",
    "SYCL_DEVICE_FILTER",
    "VLLM_TARGET_DEVICE",
    "ZE_AFFINITY_MASK",
    "ZE_FLAT_DEVICE_HIERARCHY",
)
"""The whole of an environment that is kept."""

_SECRET_FLAGS = ("--api-key", "--admin-api-key", "--hf-token", "--ssl-keyfile-password")


def split(data: str) -> tuple[str, ...]:
    """The strings of /proc/PID/cmdline or environ, which end in NUL."""
    return tuple(data.removesuffix("\0").split("\0")) if data else ()


def read(argv: Sequence[str], environ: Sequence[str], *, pid: int) -> Workload:
    """`environ` holds NAME=value. Only variables that select devices are kept, and no word that is a secret."""
    env: dict[str, str] = {}
    for assignment in environ:
        name, equals, value = assignment.partition("=")
        if equals and name in DEVICE_VARIABLES:
            env[name] = value
    return Workload(name=f"pid {pid}", argv=tuple(_blotted(argv)), env=_said(env), path=f"/proc/{pid}/cmdline")


def _said(env: Mapping[str, str]) -> dict[str, str]:
    return {name: BLOT if has_token(value) else value for name, value in env.items()}


def _blotted(argv: Sequence[str]) -> list[str]:
    """Secrets are replaced, never kept: a rule still sees that one stands there."""
    words: list[str] = []
    for at, word in enumerate(argv):
        flag, equals, _ = word.partition("=")
        named = flag.replace("_", "-") in _SECRET_FLAGS
        follows = at > 0 and argv[at - 1].replace("_", "-") in _SECRET_FLAGS
        if follows or (not named and has_token(word)):
            words.append(BLOT)
        else:
            words.append(f"{flag}={BLOT}" if named and equals else word)
    return words
