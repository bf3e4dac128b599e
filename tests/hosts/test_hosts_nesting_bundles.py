"""Layers around this process: the bundles of real places, combinations, and what looks like a layer and is none."""

import pytest

from selfhost.core.recorded import Recorded
from selfhost.hosts import nesting
from selfhost.hosts.detect import detect
from selfhost.shapes.host import Known
from tests.hosts.fixture_machines import tree

ID = "66826257e096f3c9d04f17577dab7ef5d84078c88f18f646fd37050ec5b6b4f6"
ROOT = "30 1 0:30 / / rw,relatime - {} rw\n"


def layers(of: Recorded) -> tuple[str, ...]:
    return tuple(layer.label for layer in nesting.read(of))


def labels(files: dict[str, str], env: dict[str, str] | None = None) -> tuple[str, ...]:
    return layers(Recorded({"files": files, "env": env or {}}))


@pytest.mark.parametrize(
    ("file", "expected", "proof"),
    [
        ("docker-cgroupv2", ("docker",), "/docker/containers/66826257"),
        ("docker-in-lxc-pve", ("docker", "lxc"), "/var/lib/docker/containers/"),
        ("host-running-docker", (), ""),
        ("jetson-thor", (), ""),
        ("k8s-containerd", ("pod", "containerd"), "QoS burstable"),
        ("kind-node", ("kind", "docker"), "product_name is kind"),
        ("limits-v1-unlimited", (), ""),
        ("lxc-unprivileged-pve", ("lxc",), "unprivileged, on Proxmox"),
        ("podman-rootless", ("podman",), "rootless"),
        ("slurm-job", ("slurm",), "SLURM_JOB_ID=402"),
        ("toolbox", ("toolbox", "podman"), "/run/.toolboxenv"),
        ("vast-rental", ("vast", "docker"), "VAST_CONTAINERLABEL=C.47102363"),
        ("vm-kvm", ("vm",), "qemu"),
        ("wsl2-dxg-no-nvidia", ("wsl2",), "microsoft-standard-WSL2"),
        ("wsl2-ubuntu", ("wsl2",), "microsoft-standard-WSL2"),
    ],
)
def test_a_real_place_has_its_layers_innermost_first(file: str, expected: tuple[str, ...], proof: str) -> None:
    of = tree(f"nesting/{file}.json")
    assert layers(of) == expected
    assert proof in " ".join(layer.proof for layer in nesting.read(of)[:1])


def test_the_second_layer_of_docker_in_a_proxmox_container_is_unprivileged() -> None:
    assert nesting.read(tree("nesting/docker-in-lxc-pve.json"))[1].proof == (
        "lxcfs is mounted on /proc, unprivileged, on Proxmox"
    )


def test_no_limit_of_version_1_leaves_the_whole_machine() -> None:
    found = detect(tree("nesting/limits-v1-unlimited.json"))
    assert isinstance(found.memory.limit, Known)
    assert found.memory.limit.value == 65_536_000 * 1024


def test_a_card_behind_dxg_without_cuda_is_of_no_known_maker() -> None:
    assert detect(tree("nesting/wsl2-dxg-no-nvidia.json")).accelerators == ()


@pytest.mark.parametrize(
    ("files", "env", "expected"),
    [
        ({}, {"SPACE_ID": "someone/demo"}, ("hf-spaces",)),
        ({}, {"SM_CURRENT_HOST": "algo-1"}, ("sagemaker",)),
        ({"/proc/1/environ": "RUNPOD_POD_ID=abcdefghijklmn\0"}, {}, ("runpod",)),
        ({"/run/host/etc/os-release": "", "/run/.containerenv": ""}, {"CONTAINER_ID": "box"}, ("distrobox", "podman")),
        ({"/run/host/etc/os-release": ""}, {"CONTAINER_ID": "4711", "VAST_CONTAINERLABEL": "C.4711"}, ("vast",)),
        ({}, {"APPTAINER_CONTAINER": "/images/vllm.sif"}, ("apptainer",)),
        ({"/proc/self/mountinfo": ROOT.format("overlay /enroot/data/user-1000/vllm")}, {}, ("enroot",)),
        ({"/proc/self/attr/current": "snap.docker.compose (enforce)"}, {}, ("snap",)),
        ({"/proc/self/attr/current": "unconfined"}, {"SNAP": "/snap/code/1", "SNAP_NAME": "code"}, ()),
        ({"/proc/sys/kernel/osrelease": "4.4.0"}, {}, ("gvisor",)),
        ({"/proc/sys/kernel/osrelease": "4.4.0-210-generic"}, {}, ()),
        ({"/proc/sys/kernel/osrelease": "6.10.14-linuxkit", "/.dockerenv": ""}, {}, ("docker", "docker-desktop")),
        ({"/proc/cmdline": "reboot=k panic=1 pci=off virtio_mmio.device=4K@0xd0000000:5"}, {}, ("firecracker",)),
        ({"/proc/self/mountinfo": ROOT.format("virtiofs kataShared")}, {}, ("kata",)),
        ({"/etc/hostname": "k3d-dev-server-0", "/bin/k3s": ""}, {}, ("k3d",)),
        ({"/etc/hostname": "minikube", "/var/lib/minikube/certs": ""}, {}, ("minikube",)),
        ({"/etc/hostname": "workstation", "/var/lib/minikube/certs": ""}, {}, ()),
        ({"/sys/class/dmi/id/product_name": "c5.metal", "/sys/class/dmi/id/sys_vendor": "Amazon EC2"}, {}, ()),
        ({"/sys/class/dmi/id/product_name": "Google Compute Engine"}, {}, ("vm",)),
        ({"/sys/class/dmi/id/sys_vendor": "VMware, Inc."}, {}, ("vm",)),
    ],
)
def test_a_layer_is_found_by_its_mark(files: dict[str, str], env: dict[str, str], expected: tuple[str, ...]) -> None:
    assert labels(files, env) == expected


@pytest.mark.parametrize("root", ["ext4 /dev/vda1", "zfs rpool/data/subvol-101-disk-0", "xfs /dev/sda2"])
def test_a_leftover_dockerenv_proves_nothing(root: str) -> None:
    assert labels({"/.dockerenv": "", "/proc/self/mountinfo": ROOT.format(root)}) == ()


def test_a_socket_that_is_mounted_into_a_container_is_of_the_machine_around() -> None:
    socket = "9 1 0:20 /docker.sock /var/run/docker.sock rw - tmpfs tmpfs rw\n"
    assert labels({"/proc/self/mountinfo": socket, "/.dockerenv": ""}) == ("sibling-docker", "docker")
    assert labels({"/proc/self/mountinfo": socket}) == ()


@pytest.mark.parametrize(
    ("group", "service"),
    [
        ("kubepods.slice/kubepods-besteffort.slice/kubepods-besteffort-pod1.slice", "QoS besteffort"),
        ("kubepods/burstable/pod12", "QoS burstable"),
        ("kubepods.slice/kubepods-pod12.slice/cri-containerd-x.scope", "QoS guaranteed"),
    ],
)
def test_the_quality_of_service_is_in_the_path_of_the_group(group: str, service: str) -> None:
    (pod,) = nesting.read(Recorded({"files": {"/proc/self/cgroup": f"0::/{group}\n"}}))
    assert (pod.label, pod.proof) == ("pod", f"control group kubepods, {service}")


def test_podman_in_toolbox_in_wsl2_and_lxc_in_a_virtual_machine_have_all_their_layers() -> None:
    files = {"/run/.toolboxenv": "", "/run/.containerenv": "", "/proc/sys/kernel/osrelease": "6.6.87-microsoft-WSL2"}
    assert labels(files) == ("toolbox", "podman", "wsl2")
    inside = {"/run/systemd/container": "lxc\n", "/sys/class/dmi/id/sys_vendor": "QEMU\n"}
    assert labels(inside) == ("lxc", "vm")


def test_a_kata_pod_is_a_pod_in_a_virtual_machine() -> None:
    files = {
        "/proc/self/mountinfo": ROOT.format("virtiofs kataShared"),
        "/proc/cpuinfo": "flags : fpu hypervisor\n",
        "/var/run/secrets/kubernetes.io/serviceaccount/token": "",
    }
    assert labels(files) == ("pod", "kata", "vm")
