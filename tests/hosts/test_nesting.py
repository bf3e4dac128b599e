"""Layers around this process, innermost first."""

from collections.abc import Callable

import pytest

from selfhost.core.recorded import Recorded
from selfhost.hosts import nesting
from selfhost.shapes.host import Host

Load = Callable[[str], Host]
ID = "66826257e096f3c9d04f17577dab7ef5d84078c88f18f646fd37050ec5b6b4f6"


def labels(files: dict[str, str], env: dict[str, str] | None = None) -> tuple[str, ...]:
    return tuple(layer.label for layer in nesting.read(Recorded({"files": files, "env": env or {}})))


@pytest.mark.parametrize(
    ("name", "layers"),
    [
        ("docker-limits", ["docker"]),
        ("docker-in-lxc", ["docker", "lxc"]),
        ("host-running-docker", []),
        ("jetson-thor", []),
        ("pod", ["pod", "containerd"]),
        ("kind-node", ["kind", "docker"]),
        ("lxc", ["lxc"]),
        ("podman-rootless", ["podman"]),
        ("slurm", ["slurm"]),
        ("toolbox", ["toolbox", "podman"]),
        ("vast", ["vast", "docker"]),
        ("vm-kvm", ["vm"]),
        ("wsl2-rtx", ["wsl2"]),
        ("wsl2-no-card", ["wsl2"]),
    ],
)
def test_the_layers_of_a_real_machine_are_found(host: Load, name: str, layers: list[str]) -> None:
    assert [layer.label for layer in host(name).nesting] == layers


def test_every_layer_names_what_proves_it(host: Load) -> None:
    (lxc,) = host("lxc").nesting
    assert lxc.proof == "container=lxc, as process 1 or systemd says, unprivileged, on Proxmox"
    (podman,) = host("podman-rootless").nesting
    assert podman.proof == "/run/.containerenv exists, rootless"
    (machine,) = host("vm-kvm").nesting
    assert machine.proof == "/sys/class/dmi/id/product_name is Standard PC (Q35 + ICH9, 2009) (qemu)"


def test_a_copied_dockerenv_on_a_root_disk_of_its_own_is_no_docker(host: Load) -> None:
    assert [layer.label for layer in host("bare-no-cards").nesting] == ["vm"]


def test_a_pod_in_kind_in_a_virtual_machine_has_all_its_layers() -> None:
    files = {
        "/proc/self/cgroup": f"0::/kubepods.slice/cri-containerd-{ID}.scope\n",
        "/proc/self/mountinfo": (
            "1 0 0:1 / / rw - overlay overlay rw\n"
            "2 1 254:1 /var/lib/kubelet/pods/f4f89416-73f9-0b5e-70d1-ca5e50abf867/etc-hosts /etc/hosts rw - xfs d rw\n"
        ),
        "/sys/class/dmi/id/product_name": "kind\n",
        "/sys/class/dmi/id/sys_vendor": "QEMU\n",
    }
    assert labels(files, {"KUBERNETES_SERVICE_HOST": "10.96.0.1"}) == ("pod", "containerd", "kind", "vm")


def test_docker_whose_data_is_a_mount_of_its_own_is_known_by_the_id_alone() -> None:
    files = {"/proc/self/mountinfo": f"5 1 8:1 /{ID}/hosts /etc/hosts rw - ext4 /dev/sdb1 rw\n"}
    assert labels(files) == ("docker",)


def test_a_host_that_mounts_the_files_of_its_containers_is_no_container() -> None:
    line = f"9 1 8:1 /var/lib/docker/containers/{ID}/hosts /srv/jail/etc/hosts rw - ext4 /dev/sda1 rw\n"
    assert labels({"/proc/self/mountinfo": line}) == ()


def test_a_container_with_the_hosts_cgroup_namespace_is_known_by_its_scope() -> None:
    assert labels({"/proc/self/cgroup": f"0::/system.slice/docker-{ID}.scope\n"}) == ("docker",)
    assert labels({"/proc/self/cgroup": f"0::/machine.slice/libpod-{ID}.scope\n"}) == ("podman",)


def test_docker_in_wsl2_is_two_layers_and_no_virtual_machine() -> None:
    files = {
        "/.dockerenv": "",
        "/proc/sys/kernel/osrelease": "6.6.87.2-microsoft-standard-WSL2\n",
        "/proc/cpuinfo": "flags : hypervisor avx2\n",
    }
    assert labels(files) == ("docker", "wsl2")


@pytest.mark.parametrize(
    ("files", "env", "layers"),
    [
        ({"/run/systemd/container": "systemd-nspawn\n"}, {}, ("nspawn",)),
        ({"/.singularity.d/env.sh": ""}, {}, ("apptainer",)),
        ({"/dev/lxd/sock": ""}, {}, ("lxc",)),
        ({"/proc/1/cgroup": "0::/lxc.payload.web/init.scope\n"}, {}, ("lxc",)),
        ({"/proc/1/environ": "container=lxc\0TERM=linux\0"}, {}, ("lxc",)),
        ({"/proc/version": "Linux version 4.4.0 #1 SMP Sun Jan 10 15:06:54 PST 2016\n"}, {}, ("gvisor",)),
        ({"/sys/fs/cgroup/cgroup.events": "", "/sys/fs/cgroup/cgroup.type": ""}, {}, ("container",)),
        ({"/sys/class/dmi/id/product_name": "m7i.metal-24xl\n", "/sys/class/dmi/id/sys_vendor": "Amazon EC2"}, {}, ()),
        ({"/sys/class/dmi/id/sys_vendor": "Amazon EC2\n"}, {}, ("vm",)),
        ({"/sys/class/dmi/id/sys_vendor": "Dell Inc.\n"}, {}, ()),
        ({"/proc/cpuinfo": "flags : hypervisor\n", "/proc/xen/capabilities": "control_d\n"}, {}, ()),
        ({}, {"KUBERNETES_SERVICE_HOST": "10.0.0.1"}, ("pod",)),
        ({"/.dockerenv": ""}, {"KUBERNETES_SERVICE_HOST": "10.0.0.1"}, ("docker",)),
        ({}, {"RUNPOD_POD_ID": "abcdefghijklmn"}, ("runpod",)),
    ],
)
def test_a_layer_is_found_by_its_mark(files: dict[str, str], env: dict[str, str], layers: tuple[str, ...]) -> None:
    assert labels(files, env) == layers
