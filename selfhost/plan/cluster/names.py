"""Names in a cluster: of the release, of folders on its volumes, of an image with its registry. Pure."""

import re

from selfhost.shapes.host import Known
from selfhost.shapes.model import Model

LONGEST = 48
"""Objects get suffixes, and a Service takes 63 letters."""
DOCKER = "docker.io"


def release_of(name: str) -> str:
    """A name that a Service may have (RFC 1035): small letters, digits and hyphens, a letter first."""
    plain = re.sub(r"[^a-z0-9]+", "-", name.lower()).strip("-")
    plain = plain if plain[:1].isalpha() else f"model-{plain}".rstrip("-")
    return plain[:LONGEST].rstrip("-")


def hub_secret(release: str) -> str:
    """The Secret that `up` makes for the hub's token, when no other was named."""
    return f"{release}-hub-token"


def with_registry(reference: str) -> str:
    """As the runtimes of a cluster resolve it, written out: a short name is Docker's hub's."""
    first, slash, _ = reference.partition("/")
    if slash and (set(".:") & set(first) or first == "localhost"):
        return reference
    return f"{DOCKER}/{reference if slash else f'library/{reference}'}"


def parts_of(reference: str) -> tuple[str, str, str, str]:
    """Registry, repository, tag, digest of a reference that has its registry."""
    registry, _, rest = reference.partition("/")
    rest, _, digest = rest.partition("@")
    repository, colon, tag = rest.rpartition(":")
    return (registry, repository, tag, digest) if colon else (registry, rest, "", digest)


def revision_of(model: Model) -> str:
    """The branch where nobody knows the commit."""
    return model.revision.value if isinstance(model.revision, Known) and model.revision.value else "main"


def model_folder(model: str, revision: str) -> str:
    """As the chart derives it from model.id and model.revision."""
    return f"models/{_part(model.replace('/', '--'))}/{_part(revision)}"


def cache_folder(reference: str, arch: str) -> str:
    """For kernels that were compiled by this image for this card."""
    return f"cache/{_part(reference.partition('@')[0].rpartition('/')[2])}-{_part(arch)}"


def _part(text: str) -> str:
    return re.sub(r"[^A-Za-z0-9_.-]+", "-", text).strip("-.").lower()
