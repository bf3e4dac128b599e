"""Variables that select or grant devices, or tell in what kind of place a process runs: all that eyes take along. Pure.

An environment holds tokens and passwords under any name, so a list of what may pass, not of what may not.
"""

import re

from selfhost.core.redact import is_secret

# By the tools that read them: CUDA and NVIDIA's container runtime, HIP and ROCm, Level Zero and SYCL, Slurm, the
# engines' own choice of devices; then marks of rented and nested places, and where docker and podman are looked for.
_SELECTING = re.compile(
    r"(?:CUDA|NVIDIA|NCCL|HIP|ROCR|ROCM|HSA|AMD|RCCL|GPU_DEVICE|ZE|ZES|ONEAPI|SYCL|NEO|CCL|VLLM|SGLANG|PYTORCH"
    r"|HABANA|ASCEND|SLURM_(?:JOB_GPUS|STEP_GPUS|GPUS|CPUS|MEM|NTASKS)|KUBERNETES_SERVICE_(?:HOST|PORT))(?:_\w+)?"
    r"|SLURM_(?:JOB_ID|LOCALID|PROCID)|LD_LIBRARY_PATH|OMP_NUM_THREADS|LOCAL_RANK|WORLD_SIZE"
    r"|container|CONTAINER_(?:ID|HOST|CONNECTION)|DOCKER_(?:HOST|CONTEXT|CONFIG)|VAST_CONTAINERLABEL|RUNPOD_POD_ID"
    r"|COLAB_RELEASE_TAG|KAGGLE_KERNEL_RUN_TYPE|MODAL_TASK_ID|CODESPACES|CODESPACE_NAME|REMOTE_CONTAINERS|SPACE_ID"
    r"|DISTROBOX_ENTER_PATH|TOOLBOX_PATH|(?:APPTAINER|SINGULARITY)_CONTAINER|SNAP"
)


def is_device_variable(name: str) -> bool:
    return _SELECTING.fullmatch(name) is not None and not is_secret(name)


def only_devices(environ: str) -> str:
    """The text of /proc/PID/environ without everything that is no device variable."""
    return "".join(
        f"{entry}\0" for entry in environ.split("\0") if is_device_variable(entry.partition("=")[0]) and "=" in entry
    )
