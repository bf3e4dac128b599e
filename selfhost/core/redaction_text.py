"""What in a text tells whose machine it is: addresses, ids, serial numbers, homes, secrets. By pattern. Pure."""

import ipaddress
import re
from collections.abc import Callable, Iterator
from functools import partial
from typing import Final

from selfhost.core.pseudonyms import Pseudonyms
from selfhost.core.redact import BLOT, mask

_KEY = re.compile(r"-----BEGIN [A-Z ]*PRIVATE KEY-----.*?(?:-----END [A-Z ]*PRIVATE KEY-----|\Z)", re.DOTALL)
_PUBLIC_KEY = re.compile(r"\b((?:ssh-(?:rsa|ed25519|dss)|ecdsa-sha2-\S+) )AAAA[\w+/=]{16,}(?: [^\s\"']+)?")
_ENCODED = re.compile(r"(?i)(\"?(?:auth|identitytoken|registrytoken|password)\"?\s*[:=]\s*\"?)[A-Za-z0-9+/=_.-]{6,}")
_EMAIL = re.compile(r"(?<![\w.+%@-])[\w.+-]+@[\w-]+(?:\.[\w-]+)*\.([a-z]{2,})(?![\w.@-])", re.IGNORECASE)
_UNITS = {"service", "scope", "socket", "slice", "mount", "target", "device", "path", "timer", "swap", "automount"}
_UUID = re.compile(r"(?<![0-9a-fA-F])[0-9a-fA-F]{8}([-_])(?:[0-9a-fA-F]{4}\1){3}[0-9a-fA-F]{12}(?![0-9a-fA-F])")
_LONG_ID = re.compile(r"(?<![0-9a-fA-F])[0-9a-f]{64}(?![0-9a-fA-F])")
_MACHINE_ID = re.compile(r"(?<![0-9a-fA-Fx])[0-9a-f]{32}(?![0-9a-fA-F])")
_ENGINE_ID = re.compile(r"\b(?:[A-Z2-7]{4}:){11}[A-Z2-7]{4}\b")
_MAC = re.compile(r"(?<![\w:.-])[0-9a-fA-F]{2}([:-])(?:[0-9a-fA-F]{2}\1){4}[0-9a-fA-F]{2}(?![\w:-]|\.\w)")
_NIC = re.compile(r"\b(enx|wlx)([0-9a-f]{12})\b")
_OCTET = r"(?:25[0-5]|2[0-4]\d|1\d\d|[1-9]?\d)"
# `6.6.87.2-microsoft` and what follows the word version have the form of an address and are none.
_IPV4 = re.compile(rf"(?<![\w.])(?<!\d-)(?:{_OCTET}\.){{3}}{_OCTET}(?![\w]|\.\d|-[A-Za-z])")
_VERSION_BEFORE = re.compile(r"(?i)(?:version|release|vbios|firmware|build|revision|\bv|\brev)\W{0,12}\Z")
_KEPT_NETS = tuple(ipaddress.ip_network(net) for net in ("127.0.0.0/8", "0.0.0.0/32", "255.0.0.0/8"))
_IPV6 = re.compile(r"(?<![\w:.])(?:[0-9a-fA-F]{0,4}:){2,7}[0-9a-fA-F]{0,4}(?![\w:])")
_SERIAL = re.compile(
    r"(?i)(?P<name>(?:\b|_)(?:serial(?:[ _-]?(?:number|num|no))?|asset[ _-]?tag|service[ _-]?tag|chassis[ _-]?id)\b"
    r"[\"']?>?\s*[:=]?\s*[\"']?)(?P<value>(?=[\w.-]*\d)[\w.-]{4,})"
)
_HOME = re.compile(
    r"(?P<before>(?:/var)?/home/|/Users/|[A-Za-z]:\\+Users\\+|/mnt/[a-z]/Users/)(?P<name>[^/\\\s:,;\"'\]}]+)"
)
_SSID = re.compile(r"(?i)(\bE?SSID\b\s*[:=]\s*\"?)([^\"\n,}]{1,32})")
_ACCOUNT = re.compile(r"\barn:aws[\w-]*:[^\s\"',]+|\bi-[0-9a-f]{8,17}\b")
_BUILDER = re.compile(r"(?<=\()(?!buildd@|dvs-builder@|mockbuild@|builder@|\w+-builder@)([\w.-]+)@([\w.-]+)(?=\))")
_TARGET = (
    re.compile(  # ssh; no unit of systemd (name@instance.service), no digest, no node of a device tree (gpu@17000000)
        r"(?<![\w.@/+-])([a-z_][a-z0-9_-]{1,31})@(?!sha\d|host-\d|[0-9a-f]+\b)([A-Za-z][A-Za-z0-9-]{2,62})"
        r"(?!\S*\.(?:service|slice|scope|socket|timer|mount|target|path))(?![\w.]*\.[a-z]{2,}\b)"
    )
)
_VOLUME = re.compile(r"(?<=/volumes/)(?!kubernetes\.io~)([^/\s\"']+)(?=/_data)")
_LAN_NAME = re.compile(
    r"(?i)(?<![\w.-])(?!(?:host|gateway|kubernetes)\.docker\.internal|metadata\.google\.internal)"
    r"(?:[a-z0-9-]+\.)+(?:local|lan|internal|corp|home|intranet|localdomain|private|ts\.net|home\.arpa)(?![\w-]|\.\w)"
)
_URL_HOST = re.compile(r"(?<=://)(?:[^/\s'\"@]{1,300}@)?([A-Za-z0-9][\w.-]*[A-Za-z0-9])(?=[:/\s'\",)\]}?#]|\Z)")
# Names that everybody's machines talk to, and vendors' names in labels and device kinds.
_PUBLIC = re.compile(
    r"(?i)(?:.*\.)?(?:localhost|(?:nvidia|amd|intel|docker|github|gitlab|google|googleapis|microsoft|azure|amazonaws|redhat"
    r"|ubuntu|canonical|fedoraproject|alpinelinux|huggingface|pytorch|kernel|debian|archlinux|nixos|opensuse|suse|quay"
    r"|nvcr|ghcr|gcr|docker|kubernetes|k8s|githubusercontent|aliyun|example|pypi|pythonhosted|sh|containerd|freedesktop"
    r"|systemd|cncf|helm|mirrorservice|launchpad|rocky|rockylinux|almalinux|oracle|centos|linuxcontainers)"
    r"\.(?:com|org|io|co|net|dev|sh|cloud|cn|app))|localhost|kubernetes|docker|unix|[\d.]+|host-\d+\S*"
)
_IMAGE = re.compile(
    r"(?<![\w/.@:-])((?:[a-z0-9-]+\.)+[a-z0-9-]+(?::\d+)?|[a-z0-9-]+:\d+)/([a-z0-9._/-]*[a-z0-9])((?::[\w.-]+)?(?:@sha256:\w+)?)"
    r"(?![\w/])"
)


def patterns(names: Pseudonyms) -> Callable[[str], str]:
    """One function over texts."""

    def replaced(text: str) -> str:
        hidden = mask(text)
        if hidden != text:
            names.blot("secret")
        for pattern, name in _STEPS:
            hidden = pattern.sub(partial(_renamed, names, name), hidden)
        return hidden

    return replaced


def _renamed(names: Pseudonyms, name: Callable[[Pseudonyms, re.Match[str]], str], match: re.Match[str]) -> str:
    """What already is a made-up name stays."""
    return match[0] if names.knows(match[0]) else name(names, match)


def _secret(names: Pseudonyms, match: re.Match[str]) -> str:
    names.blot("secret")
    return (match[1] if match.re.groups else "") + BLOT


def _email(names: Pseudonyms, match: re.Match[str]) -> str:
    return match[0] if match[1].lower() in _UNITS else names.of("e-mail address", match[0])


def _builder(names: Pseudonyms, match: re.Match[str]) -> str:
    return f"{user(names, match[1])}@{names.of('host', match[2])}"


def _serial(names: Pseudonyms, match: re.Match[str]) -> str:
    value = match["value"]
    return match["name"] + (value if names.knows(value) else names.of("serial number", value))


def _url_host(names: Pseudonyms, match: re.Match[str]) -> str:
    own = match[1]
    return match[0] if is_public(own) or names.knows(own) else match[0].replace(own, names.of("host", own))


def _image(names: Pseudonyms, match: re.Match[str]) -> str:
    registry, path, tag = match.groups()
    if is_public(registry.partition(":")[0]):
        return match[0]
    return f"{names.of('host', registry)}/{names.of('image', path)}{tag}"


def _ipv4(names: Pseudonyms, match: re.Match[str]) -> str:
    address = ipaddress.ip_address(match[0])
    before = match.string[max(0, match.start() - 40) : match.start()]
    kept = any(address in net for net in _KEPT_NETS) or _VERSION_BEFORE.search(before)
    return match[0] if kept else names.of("ipv4 address", match[0])


def _ipv6(names: Pseudonyms, match: re.Match[str]) -> str:
    """`0::/` of a control group and a PCI address have colons too: only what is an address and tells where counts."""
    try:
        address = ipaddress.IPv6Address(match[0])
    except ValueError:
        return match[0]
    tells = max(map(len, match[0].split(":"))) >= 3 and not address.is_loopback
    return names.of("ipv6 address", match[0]) if tells else match[0]


# The order counts: what an earlier one wrote is left alone by the later ones.
_STEPS: Final[tuple[tuple[re.Pattern[str], Callable[[Pseudonyms, re.Match[str]], str]], ...]] = (
    (_KEY, _secret),
    (_PUBLIC_KEY, _secret),
    (_ENCODED, _secret),
    (_ACCOUNT, lambda names, match: names.of("cloud account", match[0])),
    (_EMAIL, _email),
    (_BUILDER, _builder),
    (_UUID, lambda names, match: names.uuid(match[0])),
    (_LONG_ID, lambda names, match: names.of("id", match[0])),
    (_ENGINE_ID, lambda names, match: names.of("engine id", match[0])),
    (_MACHINE_ID, lambda names, match: names.of("id", match[0])[:32]),
    (_MAC, lambda names, match: names.of("mac address", match[0].replace("-", ":"))),
    (_NIC, lambda names, match: match[1] + names.of("mac address", match[2]).replace(":", "")),
    (_SERIAL, _serial),
    (_HOME, lambda names, match: match["before"] + user(names, match["name"])),
    (_TARGET, _builder),
    (_SSID, lambda names, match: match[1] + names.of("wi-fi name", match[2].strip())),
    (_VOLUME, lambda names, match: names.of("volume", match[1])),
    (_IMAGE, _image),
    (_URL_HOST, _url_host),
    (_LAN_NAME, lambda names, match: names.of("host", match[0])),
    (_IPV4, _ipv4),
    (_IPV6, _ipv6),
)


def is_public(name: str) -> bool:
    return _PUBLIC.fullmatch(name) is not None


def user(names: Pseudonyms, name: str) -> str:
    """Accounts that every machine has keep their names."""
    return (
        name if name.lower() in ("root", "public", "default", "shared") or names.knows(name) else names.of("user", name)
    )


def homes(text: str) -> Iterator[str]:
    """Users by their home folders."""
    yield from (match["name"] for match in _HOME.finditer(text))


def serials(text: str) -> Iterator[str]:
    yield from (match["value"] for match in _SERIAL.finditer(text))
