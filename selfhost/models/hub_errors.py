"""What the hub's refusals mean, in words. Each says which address was asked and whether a token went along."""

from collections.abc import Mapping

from selfhost.core.errors import Busy, EnvironmentMissing, InputError, SelfhostError
from selfhost.models.catalog import nearest
from selfhost.models.hub_cache import HubCache
from selfhost.models.hub_token import VARIABLES, NoToken
from selfhost.shapes.units import format_bytes, format_duration


def _token_words(cache: HubCache) -> str:
    found = cache.found
    return (
        f"No token was sent: {found.reason}."
        if isinstance(found, NoToken)
        else f"The token from {found.source} was sent."
    )


def gated(repo_id: str, cache: HubCache) -> SelfhostError:
    page = f"{cache.endpoint}/{repo_id}"
    if cache.token is None:
        return EnvironmentMissing(
            f"{repo_id} is gated, and no token was sent",
            why=f"Its authors ask every user to accept a licence. {_token_words(cache)}",
            fix=(f"accept the licence on {page}, then log in:\nhf auth login",),
            id="MD007",
        )
    return EnvironmentMissing(
        f"{repo_id} is gated, and the account of the token has no access",
        why=f"{_token_words(cache)} The licence may not be accepted yet, or the authors have not answered.",
        fix=(
            f"accept the licence on {page} with this account, and wait for the answer there",
            "see which account the token belongs to:\nhf auth whoami",
            "a fine-grained token needs the permission to read gated repositories",
        ),
        id="MD007",
    )


def not_found(repo_id: str, cache: HubCache) -> SelfhostError:
    near = nearest(repo_id)
    hidden = (
        "The hub answers the same for a private one that this account may not see."
        if cache.token
        else ("The hub answers the same for a private repository when nobody is logged in.")
    )
    return InputError(
        f"there is no model {repo_id} on {cache.endpoint}, or it is private",
        why=f"{hidden} {_token_words(cache)}",
        fix=(
            *(f"perhaps {name}" for name in near),
            "see what selfhost knows by name:\nselfhost models",
            *(() if cache.token else ("for a private model log in first:\nhf auth login",)),
        ),
        id="MD008",
    )


def no_revision(repo_id: str, asked: str, cache: HubCache) -> SelfhostError:
    return InputError(
        f"{repo_id} has no revision `{asked}`",
        why="A revision is a branch, a tag, or a commit of 40 hexadecimal digits.",
        fix=(f"see them on {cache.endpoint}/{repo_id}/commits/main, or leave out the part after @",),
        id="MD009",
    )


def token_refused(repo_id: str, cache: HubCache, status: int) -> SelfhostError:
    return EnvironmentMissing(
        f"the hub refused access to {repo_id} (HTTP {status})",
        why=f"{_token_words(cache)}{' It may have expired, or lack the permission.' if cache.token else ''}",
        fix=_other_token(cache),
        id="MD019",
    )


def _other_token(cache: HubCache) -> tuple[str, ...]:
    """How to send another token or none: a variable goes before the file that a login writes."""
    if cache.token is None:
        return ("log in:\nhf auth login",)
    if cache.token.source in VARIABLES:
        name = cache.token.source
        return (
            f"take the variable away and log in, which keeps a new token in a file:\nunset {name}\nhf auth login",
            f"or only take it away, for a model that needs no token:\nunset {name}",
        )
    return ("log in again:\nhf auth login", "or go without a token:\nhf auth logout")


def rate_limited(repo_id: str, cache: HubCache, wait_s: str) -> SelfhostError:
    return EnvironmentMissing(
        f"the hub answers 429, too many requests, for {repo_id}",
        why=f"{cache.endpoint} limits how often one address may ask. {_token_words(cache)}",
        fix=(
            f"wait {wait_s} seconds and run the same command again" if wait_s else "wait some minutes and run it again",
            *(() if cache.token else ("accounts have a higher limit:\nhf auth login",)),
        ),
        id="MD011",
    )


def server_error(repo_id: str, cache: HubCache, status: int) -> SelfhostError:
    return EnvironmentMissing(
        f"the hub answers HTTP {status} for {repo_id}",
        why=f"{cache.endpoint} has trouble of its own. What was downloaded stays.",
        fix=("run the same command again later; it continues where it was",),
        id="MD025",
    )


def unreachable(repo_id: str, cache: HubCache, reason: str, *, proxy: str = "") -> SelfhostError:
    through = f" The proxy {proxy} is asked first." if proxy else ""
    return EnvironmentMissing(
        f"the model hub {cache.endpoint} cannot be reached, and {repo_id} is not whole on this machine",
        why=f"{reason}.{through} What was downloaded stays.",
        fix=(
            "when the network is back, run the same command again; it continues where it was",
            *(() if proxy else ("behind a proxy, name it:\nexport HTTPS_PROXY=http://HOST:PORT",)),
            "for a mirror of the hub:\nexport HF_ENDPOINT=https://HOST",
            f"or fetch it on a machine with network and copy {cache.storage(repo_id)} here:\nhf download {repo_id}",
        ),
        id="MD010",
    )


def offline(repo_id: str, cache: HubCache) -> SelfhostError:
    return EnvironmentMissing(
        f"{repo_id} is not whole on this machine, and {cache.offline_by} forbids fetching it",
        why=f"Looked in {cache.storage(repo_id)}.",
        fix=(
            f"allow the network for once:\n{cache.offline_by}=0 hf download {repo_id}",
            f"or fetch it elsewhere and copy {cache.storage(repo_id)} here:\nhf download {repo_id}",
        ),
        id="MD013",
    )


_MAKE_ROOM = (
    "see what the cache holds, then remove what is not needed:\nhf cache ls",
    "or keep the cache on another disk:\nexport HF_HOME=/DISK/huggingface",
)


def no_space(repo_id: str, cache: HubCache, *, missing: int, spare: int, free: int) -> SelfhostError:
    """Before the first byte: `missing` of the files, and `spare` beside them."""
    return EnvironmentMissing(
        f"{repo_id} needs {format_bytes(missing + spare)} in {cache.root}; {format_bytes(free)} are free there",
        why=f"{format_bytes(missing)} are still to come, and {format_bytes(spare)} must stay free beside them. "
        "Nothing was downloaded now.",
        fix=_MAKE_ROOM,
        id="MD012",
    )


def disk_full(repo_id: str, cache: HubCache, *, missing: int | None, free: int) -> SelfhostError:
    """In the middle; `missing` is None when the repository's files are not known."""
    still = f"; {format_bytes(missing)} are still to come" if missing else ""
    return EnvironmentMissing(
        f"the disk of {cache.root} became full while {repo_id} was downloaded",
        why=f"{format_bytes(free)} are free there now{still}. What was downloaded stays.",
        fix=(*_MAKE_ROOM, "then run the same command again; it continues where it was"),
        id="MD029",
    )


def holder_words(holder: Mapping[str, object]) -> str:
    """Who holds the lock of a download. The hub's own library locks the same files and writes nothing about itself."""
    return f"pid {holder['pid']}" if holder.get("pid") else "another program"


def held(repo_id: str, cache: HubCache, *, holder: Mapping[str, object], waited_s: float) -> SelfhostError:
    look = f"ps -fp {holder['pid']}" if holder.get("pid") else f"fuser -v {cache.root}/.locks/*/*.lock"
    return Busy(
        f"{holder_words(holder)} has been downloading {repo_id} for {format_duration(waited_s)}",
        why=f"Both would write the same file in {cache.root}.",
        fix=(f"see whether it still works:\n{look}", "then run the same command again; it continues where it was"),
        id="MD026",
    )


def not_writable(cache: HubCache, reason: str) -> SelfhostError:
    return EnvironmentMissing(
        f"the hub's cache {cache.root} cannot be written",
        why=f"{reason}.",
        fix=(
            f"see whom it belongs to:\nls -ld {cache.root}",
            "or keep the cache elsewhere:\nexport HF_HOME=$HOME/.cache/huggingface",
        ),
        id="MD024",
    )


def broken_off(repo_id: str, cache: HubCache, reason: str) -> SelfhostError:
    return EnvironmentMissing(
        f"the download of {repo_id} broke off",
        why=f"{cache.endpoint}: {reason}. Files that were whole stay.",
        fix=("run the same command again; it continues where it was",),
        id="MD020",
    )
