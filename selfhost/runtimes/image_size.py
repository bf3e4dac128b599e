"""How much a pull will bring, from the registry's own manifest: a container engine says it only while it pulls."""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any
from urllib.parse import urlencode

from selfhost.shapes.fact import Fact, Known, Unknown

TIMEOUT_S = 5.0
"""A number for a person; nobody waits for it longer."""
_KINDS = (
    "application/vnd.oci.image.index.v1+json",
    "application/vnd.docker.distribution.manifest.list.v2+json",
    "application/vnd.oci.image.manifest.v1+json",
    "application/vnd.docker.distribution.manifest.v2+json",
)
PROCESSORS: Mapping[str, str] = {"x86_64": "amd64", "aarch64": "arm64"}
"""As images name what the kernel calls by the left name."""
HUB = "registry-1.docker.io"
"""Who answers for docker.io (distribution/reference, normalize.go)."""
_PART = re.compile(r'(\w+)="([^"]*)"')


@dataclass(frozen=True, slots=True, kw_only=True)
class Address:
    """Where a manifest lies: `url` of the registry, `repository`, `tag` or digest."""

    url: str
    repository: str
    tag: str

    @property
    def path(self) -> str:
        return f"/v2/{self.repository}/manifests/{self.tag}"


def address_of(reference: str) -> Address:
    """By the rules of distribution/reference: a first part with a dot, a port or `localhost` is a registry."""
    plain, _, digest = reference.partition("@")
    first, slash, rest = plain.partition("/")
    named = bool(slash) and ("." in first or ":" in first or first == "localhost")
    host, path = (first, rest) if named else ("docker.io", plain)
    head, colon, tag = path.rpartition(":")
    repository = head if colon else path
    if host == "docker.io":
        host, repository = HUB, repository if "/" in repository else f"library/{repository}"
    local = host.rpartition(":")[0] or host
    scheme = "http" if local in ("127.0.0.1", "localhost") else "https"  # as Docker does with registries on loopback
    return Address(url=f"{scheme}://{host}", repository=repository, tag=digest or (tag if colon else "latest"))


def pull_bytes(reference: str, *, architecture: str) -> Fact[int]:
    """The sum of the layers as they travel, compressed; unpacked they take more. Sends no login. Never raises."""
    at = address_of(reference)
    whole = _manifest(at)
    if isinstance(whole, Unknown):
        return whole
    if isinstance(listed := whole.get("manifests"), list):
        digest = _for(listed, architecture)
        if not digest:
            return Unknown(f"{at.url} lists no image for linux/{architecture}")
        whole = _manifest(Address(url=at.url, repository=at.repository, tag=digest))
        if isinstance(whole, Unknown):
            return whole
    layers = whole.get("layers")
    sizes = [layer.get("size") for layer in layers if isinstance(layer, dict)] if isinstance(layers, list) else []
    whole_numbers = [size for size in sizes if isinstance(size, int) and size >= 0]
    if not sizes or len(whole_numbers) != len(sizes):
        return Unknown(f"{at.url} gave a manifest without the sizes of its layers")
    return Known(sum(whole_numbers), how=f"the manifest at {at.url}")


def _for(listed: list[Any], architecture: str) -> str:
    for one in listed:
        platform = one.get("platform") if isinstance(one, dict) else None
        if isinstance(platform, dict) and (platform.get("os"), platform.get("architecture")) == ("linux", architecture):
            return str(one.get("digest") or "")
    return ""


def _manifest(at: Address) -> Mapping[str, Any] | Unknown:
    from selfhost.core.http import Client  # at use: 187 ms

    asked = {"Accept": ", ".join(_KINDS)}
    with Client(at.url, timeout_s=TIMEOUT_S) as client:
        answer = client.request("GET", at.path, headers=asked)
        if answer.status == 401 and (token := _token(answer.headers.get("www-authenticate", ""))):
            answer = client.request("GET", at.path, headers={**asked, "Authorization": f"Bearer {token}"})
    if answer.status == 401:
        return Unknown(f"{at.url} wants a login, which only the container engine has")
    if not answer.ok:
        return Unknown(f"{at.url}: {answer.error or f'HTTP {answer.status}'}")
    body = answer.json
    return body if isinstance(body, dict) else Unknown(f"{at.url} answered with no manifest")


def _token(challenge: str) -> str:
    """The token that a registry gives to anybody; empty where it gives none."""
    from selfhost.core.http import Client

    said = dict(_PART.findall(challenge))
    realm = said.pop("realm", "")
    if not challenge.lower().startswith("bearer ") or not realm.startswith(("http://", "https://")):
        return ""
    asked = urlencode({name: said[name] for name in ("service", "scope") if name in said})
    with Client(realm, timeout_s=TIMEOUT_S) as client:
        body = client.get(f"{realm}{'&' if '?' in realm else '?'}{asked}").json
    found = (body.get("token") or body.get("access_token")) if isinstance(body, dict) else None
    return found if isinstance(found, str) else ""
