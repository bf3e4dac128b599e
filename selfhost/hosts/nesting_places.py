"""Places that are rented, lent or entered: their own variables and files. Hints, so the engine beneath is named too."""

import re

from selfhost.hosts.glance import exists, glance
from selfhost.hosts.nesting_marks import Marks, either, file, variable


def slurm(marks: Marks) -> str:
    job = re.search(r"/(?:slurmstepd\.scope|slurm/uid_\d+)/job_\d+", marks.cgroup)
    return variable("SLURM_JOB_ID")(marks) or (f"control group {job[0]}" if job else "")


def enroot(marks: Marks) -> str:
    root = next((root for root, point, *_ in marks.mounts if point == "/"), "")
    kind, source = marks.root
    found = re.search(r"/enroot/data/\S*", f"{root} {kind} {source}")
    return f"the root file system is {found[0][:60]}" if found else variable("ENROOT_ROOTFS")(marks)


def distrobox(marks: Marks) -> str:
    """Vast uses CONTAINER_ID for a number; distrobox for a name, with the machine's root at /run/host."""
    name = marks.system.env.get("CONTAINER_ID", "")
    if name and not name.isdecimal() and exists(marks.system, "/run/host"):
        return f"environment CONTAINER_ID={name}, and /run/host exists"
    return variable("DISTROBOX_ENTER_PATH")(marks)


def hf_spaces(marks: Marks) -> str:
    space = marks.system.env.get("SPACE_ID") or marks.environ.get("SPACE_ID", "")
    return f"environment SPACE_ID={space}" if re.fullmatch(r"[^/\s]+/[^/\s]+", space) else ""


def snap(marks: Marks) -> str:
    """Programs started from a snap inherit its variables; the profile of AppArmor tells which of them is confined."""
    profile = glance(marks.system, "/proc/self/attr/current")
    if profile.startswith("snap."):
        return f"AppArmor profile {profile.split()[0]}"
    place = marks.system.env.get("SNAP", "")
    if profile or not place.startswith("/snap/"):
        return ""
    return variable("SNAP", "SNAP_NAME")(marks)


vast = variable("VAST_CONTAINERLABEL")
runpod = variable("RUNPOD_POD_ID")
colab = variable("COLAB_RELEASE_TAG")
kaggle = variable("KAGGLE_KERNEL_RUN_TYPE")
modal = variable("MODAL_TASK_ID")
sagemaker = either(variable("SM_CURRENT_HOST"), variable("TRAINING_JOB_NAME", "AWS_CONTAINER_CREDENTIALS_RELATIVE_URI"))
codespaces = variable("CODESPACES", "CODESPACE_NAME")
devcontainer = either(variable("REMOTE_CONTAINERS"), variable("REMOTE_CONTAINERS_IPC"))
toolbox = file("/run/.toolboxenv")
flatpak = file("/.flatpak-info")
apptainer = either(file("/.singularity.d"), variable("APPTAINER_CONTAINER"), variable("SINGULARITY_CONTAINER"))
charliecloud = either(variable("CH_RUNNING"), file("/ch/environment"))
