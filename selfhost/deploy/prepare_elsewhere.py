"""Distributions whose packages no role installs: refused before anything is asked, with the steps by hand."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from selfhost.core.errors import EnvironmentMissing
from selfhost.core.system import System
from selfhost.hosts.glance import exists, glance, pairs

_INSTALLING: Final = ("docker", "podman", "nvidia_container_toolkit")
_APT: Final = ("debian", "ubuntu")
_TOOLKIT_PAGE: Final = "https://docs.nvidia.com/datacenter/cloud-native/container-toolkit/latest/install-guide.html"
_RPM: Final = "https://nvidia.github.io/libnvidia-container/stable/rpm/nvidia-container-toolkit.repo"
_CE: Final = "docker-ce docker-ce-cli containerd.io docker-buildx-plugin docker-compose-plugin"
_START: Final = "sudo systemctl enable --now docker"
# Toolkit 1.18 and newer keeps /var/run/cdi/nvidia.yaml fresh by itself where systemd runs.
_CONFIGURE: Final = "sudo nvidia-ctk runtime configure --runtime=docker && sudo systemctl restart docker"
_DNF_TOOLKIT: Final = (
    f"curl -sL {_RPM} | sudo tee /etc/yum.repos.d/nvidia-container-toolkit.repo\n"
    f"sudo dnf install -y nvidia-container-toolkit\n{_CONFIGURE}"
)


def _dnf(repository: str, add: str) -> dict[str, str]:
    return {
        "docker": f"{add}https://download.docker.com/linux/{repository}/docker-ce.repo\n"
        f"sudo dnf install -y {_CE}\n{_START}",
        "podman": "sudo dnf install -y podman",
        "nvidia_container_toolkit": _DNF_TOOLKIT,
    }


# Sources: docs.docker.com/engine/install (its pages for Fedora, RHEL and CentOS), the pages on Docker in the wikis of
# Arch, Alpine, openSUSE and NixOS; for the toolkit the page named above.
_EL: Final = "sudo dnf install -y dnf-plugins-core\nsudo dnf config-manager --add-repo "
_BY_HAND: Final[Mapping[str, Mapping[str, str]]] = {
    "fedora": _dnf("fedora", "sudo dnf config-manager addrepo --from-repofile "),
    "rhel": _dnf("rhel", _EL),
    "centos": _dnf("centos", _EL),
    "arch": {
        "docker": f"sudo pacman -S docker docker-compose\n{_START}",
        "podman": "sudo pacman -S podman",
        "nvidia_container_toolkit": f"sudo pacman -S nvidia-container-toolkit\n{_CONFIGURE}",
    },
    "suse": {
        "docker": f"sudo zypper install docker docker-compose\n{_START}",
        "podman": "sudo zypper install podman",
        "nvidia_container_toolkit": f"sudo zypper addrepo {_RPM}\n"
        f"sudo zypper install nvidia-container-toolkit\n{_CONFIGURE}",
    },
    "alpine": {
        "docker": "doas apk add docker docker-cli-compose\n"
        "doas rc-update add docker default\ndoas service docker start",
        "podman": "doas apk add podman",
        "nvidia_container_toolkit": "",
    },
    "nixos": {
        "docker": "virtualisation.docker.enable = true;",
        "podman": "virtualisation.podman.enable = true;",
        "nvidia_container_toolkit": "hardware.nvidia-container-toolkit.enable = true;",
    },
}
_NAMES: Final = {
    "docker": "Docker",
    "podman": "Podman",
    "nvidia_container_toolkit": "NVIDIA's container toolkit",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Distribution:
    """`kin`: its own id, then those that it is built on, nearest first (os-release, ID and ID_LIKE)."""

    name: str
    kin: tuple[str, ...]
    image: bool = False
    """The system is an image that packages are not simply installed into (OSTree)."""

    @property
    def apt(self) -> bool:
        """Unknown ones are left to Ansible to tell."""
        return not self.kin or any(one in _APT for one in self.kin)


def distribution(system: System) -> Distribution:
    text = glance(system, "/etc/os-release") or glance(system, "/usr/lib/os-release")
    said = {key: value.strip("\"'") for key, value in pairs(text, separator="=").items()}
    kin = tuple(one.lower() for one in (said.get("ID", ""), *said.get("ID_LIKE", "").split()) if one)
    name = said.get("PRETTY_NAME") or said.get("NAME") or said.get("ID") or "unknown"
    return Distribution(name=name, kin=kin, image=exists(system, "/run/ostree-booted"))


def refuse(here: Distribution, roles: Sequence[str]) -> None:
    """Raises EnvironmentMissing where one of the roles would install packages that this distribution has not."""
    wanted = [role for role in _INSTALLING if role in roles]
    if here.apt or not wanted:
        return
    steps = next((_BY_HAND[one] for one in map(_family, here.kin) if one in _BY_HAND), {})
    if here.image:
        steps = {}
    rest = [role for role in roles if role not in (*_INSTALLING, "packages")]
    raise EnvironmentMissing(
        f"prepare knows Debian, Ubuntu and what is built on them; this is {here.name}",
        why=(
            "Its system is an image: packages are layered onto it, and count from the next start."
            if here.image
            else "The packages of other distributions have not been tried, so nothing is installed or changed."
        ),
        fix=(
            *(_one(role, steps.get(role), here) for role in wanted),
            *(f"this role installs nothing and runs here as well:\nselfhost prepare --only {role}" for role in rest),
            "then look again:\nselfhost doctor",
        ),
        id="RT095",
    )


def _family(one: str) -> str:
    return "suse" if "suse" in one or one in ("sles", "sled") else one


def _one(role: str, step: str | None, here: Distribution) -> str:
    name = _NAMES[role]
    if step == "":
        return f"{name} needs glibc, which {here.name} has not: take another distribution for these cards"
    if step is None:
        page = {"docker": "https://docs.docker.com/engine/install/", "podman": "https://podman.io/docs/installation"}
        return f"{name}, by its own guide:\n{page.get(role, _TOOLKIT_PAGE)}"
    where = ", in configuration.nix" if "nixos" in here.kin else ", by hand"
    return f"{name}{where}:\n{step}"
