"""What a pull says when it fails → what it means, why, and what to do."""

from collections.abc import Sequence

from selfhost.core.errors import EnvironmentMissing
from selfhost.runtimes.container_client import Client
from selfhost.runtimes.container_errors import ROWS, Row

_OF_THE_REGISTRY: Sequence[Row] = (
    Row(
        id="RT078",
        pattern=r"toomanyrequests|too many requests|rate limit",
        what="the registry lets this machine pull no more for now: {subject}",
        why="It counts pulls by address, or by account.",
        fix=("log in, which raises the limit:\n{kind} login", "or wait, then do it again:\n{kind} pull {subject}"),
    ),
    Row(
        id="RT080",
        pattern=r"digest.* (mismatch|did not match)|does not match|unexpected digest|layer verification failed"
        r"|content digest .* not found|digest invalid",
        what="what the registry sent for {subject} has another content than its digest says",
        why="The transfer was damaged, or a mirror or proxy on the way changed it.",
        fix=("try once more:\n{kind} pull {subject}", "see which mirrors are used:\n{kind} info"),
    ),
    Row(
        id="RT079",
        pattern=r"no matching manifest|no image found in (manifest list|image index)|match the specified platform"
        r"|choosing (an )?image|image operating system",
        what="{subject} does not exist for this machine's processor",
        why="The registry has the tag, and none of its images is for this architecture.",
        fix=("see for which there are some:\n{kind} manifest inspect {subject}",),
    ),
    Row(
        id="RT075",
        pattern=r"manifest unknown|manifest for .* not found|not found: manifest|name unknown|repository name not known"
        r"|reading manifest .*(404|not found)",
        what="the registry has no {subject}",
        why="The tag was removed or never existed; its owner can move and delete tags, and can't move a digest.",
        fix=(
            "name another image:\nselfhost up --image IMAGE:TAG",
            "see whether a newer selfhost knows another one:\npip index versions selfhost-kit",
        ),
    ),
    Row(
        id="RT076",
        pattern=r"unauthorized|no basic auth credentials|access (to the resource )?(is )?denied|denied: |authentication"
        r"|may require 'docker login'|error getting credentials|credential",
        what="the registry gives {subject} to nobody without access",
        why="No login was sent, or the one that was sent is not accepted; one that does not exist looks alike.",
        fix=("log in:\n{kind} login {registry}", "and try by hand:\n{kind} pull {subject}"),
    ),
    Row(
        id="RT077",
        pattern=r"no such host|connection refused|i/o timeout|network is unreachable|no route to host|TLS handshake"
        r"|x509|server gave HTTP response to HTTPS client|context deadline exceeded|request canceled|dial tcp"
        r"|pinging container registry",
        what="the registry of {subject} can't be reached",
        why="{kind} asks it, not selfhost: its proxy settings and certificates count.",
        fix=("try by hand:\n{kind} pull {subject}", "see its proxy and mirrors:\n{kind} info"),
    ),
)

PULL_ROWS: Sequence[Row] = (
    *(row for row in ROWS if row.id in ("RT060", "RT068", "RT067", "RT064", "RT070")),
    *_OF_THE_REGISTRY,
    *(row for row in ROWS if row.id in ("RT063", "RT066", "RT069")),
)


def other_content(client: Client, reference: str, *, got: str) -> EnvironmentMissing:
    return EnvironmentMissing(
        f"{reference} came with another digest: {got}",
        why="A digest names one content for good, so this is not the image that was asked for.",
        fix=(f"remove it and try again:\n{client.kind} image rm {reference}",),
        id="RT080",
    )
