"""Which refusal an exception of the hub library stands for; by the names of its classes, so nothing is imported."""

import errno
from collections.abc import Callable, Mapping

from selfhost.core.errors import SelfhostError
from selfhost.core.redact import without_login
from selfhost.models import hub_errors
from selfhost.models.hub_cache import HubCache

_REFUSALS: tuple[tuple[str, Callable[[str, str, HubCache], SelfhostError]], ...] = (
    ("GatedRepoError", lambda repo_id, _, cache: hub_errors.gated(repo_id, cache)),
    ("RepositoryNotFoundError", lambda repo_id, _, cache: hub_errors.not_found(repo_id, cache)),
    ("RevisionNotFoundError", hub_errors.no_revision),
)
"""Most special first: a gated repository is a kind of one not found (huggingface_hub.errors)."""
_AWAY = {"ConnectError", "TimeoutException", "ProxyError"}
"""httpx2: nothing answered at all; its other transport errors break off a running answer."""
_CARRIERS = {"LocalEntryNotFoundError", "Interrupted"}
"""Say that something else went wrong, which is their cause."""


def in_words(
    error: BaseException, repo_id: str, *, asked: str, cache: HubCache, env: Mapping[str, str]
) -> SelfhostError:
    """The error to show for what the library, its HTTP client or the file system raised."""
    kinds = {kind.__name__ for kind in type(error).__mro__}
    if kinds & _CARRIERS and error.__cause__ is not None:
        return in_words(error.__cause__, repo_id, asked=asked, cache=cache, env=env)
    for name, words in _REFUSALS:
        if name in kinds:
            return words(repo_id, asked, cache)
    if "HfHubHTTPError" in kinds:
        return _by_status(error, repo_id, cache)
    if kinds & _AWAY:
        return hub_errors.unreachable(repo_id, cache, reason(error), proxy=_proxy(env))
    return _by_errno(error, repo_id, asked, cache)


def _by_status(error: BaseException, repo_id: str, cache: HubCache) -> SelfhostError:
    response = getattr(error, "response", None)
    status = getattr(response, "status_code", 0)
    if status == 429:
        return hub_errors.rate_limited(repo_id, cache, getattr(response, "headers", {}).get("Retry-After", ""))
    if status in (401, 403):
        return hub_errors.token_refused(repo_id, cache, status)
    return hub_errors.server_error(repo_id, cache, status)


def _by_errno(error: BaseException, repo_id: str, asked: str, cache: HubCache) -> SelfhostError:
    number = error.errno if isinstance(error, OSError) else None
    if number in (errno.ENOSPC, errno.EDQUOT):
        return hub_errors.disk_full(repo_id, cache, missing=cache.missing_bytes(repo_id, asked), free=cache.free_bytes)
    if number in (errno.EACCES, errno.EPERM, errno.EROFS):
        return hub_errors.not_writable(cache, reason(error))
    return hub_errors.broken_off(repo_id, cache, reason(error))


def reason(error: BaseException) -> str:
    """The first line of what was said, without a full stop."""
    if isinstance(error, OSError) and error.strerror and error.filename:
        return f"{error.strerror}: {error.filename}"
    text = str(error).strip().partition("\n")[0].rstrip(".")
    return text or "the connection broke"


def _proxy(env: Mapping[str, str]) -> str:
    """The proxy that is set, without user and password."""
    proxy = next((env[name] for name in ("HTTPS_PROXY", "https_proxy", "ALL_PROXY", "all_proxy") if env.get(name)), "")
    return without_login(proxy)
