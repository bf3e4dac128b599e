"""Masks that come from somewhere else: the shell that starts Compose, a file of variables, a batch job."""

from collections.abc import Iterator

from selfhost.shapes.finding import Severity
from selfhost.shapes.host import Host
from selfhost.shapes.workload import EnvSource, Form, Workload
from selfhost.visibility.rule import Found, place, rule
from selfhost.visibility.rules.masks import ordinals

COMPOSE = "https://docs.docker.com/compose/how-tos/environment-variables/set-environment-variables/"
SLURM = "https://github.com/AMD-AGI/Hyperloom/issues/1582"
SELECTING = (
    "CUDA_VISIBLE_DEVICES",
    "HIP_VISIBLE_DEVICES",
    "ROCR_VISIBLE_DEVICES",
    "GPU_DEVICE_ORDINAL",
    "ZE_AFFINITY_MASK",
    "ONEAPI_DEVICE_SELECTOR",
)


@rule("DV009", Severity.WARNING, source=COMPOSE)
def mask_of_the_shell(workload: Workload, host: Host | None) -> Iterator[Found]:
    del host
    if workload.form is not Form.COMPOSE:
        return
    for variable in SELECTING:
        source = workload.env_sources.get(variable)
        if source is EnvSource.PASSED_THROUGH:
            seen = f"{variable} stands without a value"
            means = "its value is whatever the shell that runs `docker compose up` has"
        elif source is EnvSource.ENV_FILE:
            seen = f"{variable}={workload.env.get(variable, '')} in an env_file"
            means = "the file is kept apart from the devices that it has to agree with"
        else:
            continue
        yield Found(
            title=f"{workload.label} takes {variable} from outside this file",
            place=place(workload, f"env.{variable}"),
            evidence=seen,
            why=f"Here {means}. A mask left over from other work hides cards without a word.",
            fix=(f"remove {variable}; choose cards under `devices:` of the service",),
        )


@rule("DV008", Severity.ERROR, source=SLURM)
def mask_of_the_job(workload: Workload, host: Host | None) -> Iterator[Found]:
    if not _in_a_job(workload, host) or not workload.image or workload.job.get("cleanenv"):
        return
    for variable in SELECTING:
        value = workload.env.get(variable)
        forwarded = workload.env_sources.get(variable) is EnvSource.PASSED_THROUGH
        numbers = ordinals(value or "")
        if not forwarded and (numbers is None or numbers == tuple(range(len(numbers)))):
            continue
        yield Found(
            title=f"{variable} of the job goes into a container that counts its devices anew",
            place=place(workload, f"env.{variable}"),
            evidence=f"{variable}={value}" if value is not None else f"{variable} is passed on from the job",
            why="Slurm confines the job to its devices and the container numbers them from 0. A mask in numbers of the "
            "node fits only a job that got the first ones: the same script works today and not tomorrow.",
            fix=(
                f"drop the masks before the container starts:\nunset {' '.join(SELECTING[:4])}",
                "let in what the job was given:\nexport NVIDIA_VISIBLE_DEVICES=all",
            ),
        )


def _in_a_job(workload: Workload, host: Host | None) -> bool:
    return workload.form is Form.BATCH or bool(workload.job) or (host is not None and "SLURM_JOB_ID" in host.env)
