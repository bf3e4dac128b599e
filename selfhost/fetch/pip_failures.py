"""What pip's last words mean: one row per cause, the first that matches wins."""

import re
from collections.abc import Sequence
from dataclasses import dataclass

EVIDENCE_LINES = 5
_RETRIED = re.compile(r"Retrying \(Retry\(total=[1-9]")
"""A connection that broke and was tried again; only the last try (total=0) says something about the end."""
_NOISE = re.compile(r"^\s*(Traceback|File \"|\^+$|WARNING: Location|Looking in |\[notice\])")


@dataclass(frozen=True, slots=True, kw_only=True)
class Cause:
    """`decisive` finds the lines that show it. `retry`: another index may have what is missing."""

    id: str
    decisive: re.Pattern[str]
    what: str
    """`{engine}` and `{folder}` are filled in."""
    why: str
    fix: tuple[str, ...]
    retry: bool = False


def _cause(id: str, decisive: str, *, what: str, why: str, fix: tuple[str, ...], retry: bool = False) -> Cause:
    return Cause(id=id, decisive=re.compile(decisive, re.IGNORECASE), what=what, why=why, fix=fix, retry=retry)


AGAIN = "run the same command again; what was downloaded is kept by pip"

# Messages of pip 23.0 to 25.3, seen in its output or read in its source (github.com/pypa/pip, src/pip/_internal:
# cli/req_command.py, index/collector.py, exceptions.py, commands/install.py) and of the urllib3 it brings.
CAUSES: tuple[Cause, ...] = (
    _cause(
        "RT011",
        r"No space left on device|Errno 28\b|Disk quota exceeded|Errno 122\b",
        what="the disk of {folder} became full while {engine} was installed",
        why="pip unpacks packages there; what it had written was removed again.",
        fix=(
            "free some room, then run the same command again; what was downloaded is kept by pip",
            "or put engines on another disk:\nexport XDG_CACHE_HOME=/path/on/a/larger/disk",
        ),
    ),
    _cause(
        "RT034",
        r"DO NOT MATCH THE HASHES|Hash mismatch|--require-hashes mode|HashMismatch",
        what="a package of {engine} does not have the hash that was expected",
        why="The file was changed or cut on its way, or pip is told to demand hashes (require-hashes) and has none.",
        fix=(
            "drop what pip keeps, then run the same command again:\npython3 -m pip cache purge",
            "see pip's own settings:\npython3 -m pip config debug",
        ),
    ),
    _cause(
        "RT038",
        r"Wheel '.*' located at .* is invalid|BadZipFile|Bad CRC-32|is not a zip file|has an invalid wheel"
        r"|invalid wheel|IncompleteRead|Download failed after|zlib\.error",
        what="a package of {engine} arrived damaged",
        why="The file that pip got is not a whole wheel: the download broke off, or the place it came from is damaged.",
        fix=(
            "drop what pip keeps, then run the same command again:\npython3 -m pip cache purge",
            "with a local folder of wheels (find-links), copy the named file there again",
        ),
    ),
    _cause(
        "RT033",
        r"ProxyError|Proxy Authentication Required|Tunnel connection failed|Cannot connect to proxy",
        what="{engine} could not be downloaded: the proxy does not let pip through",
        why="pip uses the proxy of its configuration or of HTTPS_PROXY.",
        fix=("see both:\nenv | grep -i _proxy\npython3 -m pip config list", AGAIN),
    ),
    _cause(
        "RT032",
        r"CERTIFICATE_VERIFY_FAILED|SSLError|SSLCertVerificationError|confirming the ssl certificate"
        r"|Could not find a suitable TLS CA certificate bundle",
        what="{engine} could not be downloaded: the certificate of the package index is not trusted here",
        why="Often a company's proxy that signs with its own authority, or a wrong clock.",
        fix=(
            "give pip the authority's certificate:\npython3 -m pip config set global.cert /path/to/ca.pem",
            "see whether the clock is right:\ndate",
        ),
    ),
    _cause(
        "RT043",
        r"\b(401|403|407) Client Error|(401|403) Error|Credentials not correct|User for .*:$",
        what="{engine} could not be downloaded: the package index refused to answer",
        why="It wants a login that pip does not have, or forbids this package.",
        fix=("see pip's own settings:\npython3 -m pip config list",),
    ),
    _cause(
        "RT031",
        r"Retrying \(Retry\(total=0|NewConnectionError|NameResolutionError|ConnectTimeoutError|Read timed out"
        r"|ReadTimeoutError|Max retries exceeded|Connection broken|failure in name resolution|RemoteDisconnected",
        what="{engine} could not be downloaded: the package index does not answer",
        why="There is no network from here to it, or its name is wrong.",
        fix=(
            "see which index pip asks:\npython3 -m pip config list",
            AGAIN,
        ),
    ),
    _cause(
        "RT036",
        r"requires a different Python: ",
        what="a package of {engine} does not support the Python that selfhost runs with",
        why="The environment is made with the same Python.",
        fix=("run selfhost with another Python, for instance 3.12",),
    ),
    _cause(
        "RT035",
        r"No matching distribution found|Could not find a version that satisfies|ResolutionImpossible"
        r"|is not a supported wheel on this platform",
        what="the package index has no {engine} for this machine",
        why="A version, or a build for this Python and processor, that it needs is not there.",
        fix=(
            "see which index pip asks, and whether it is complete:\npython3 -m pip config list",
            "or let pip ask a second one:\nexport PIP_EXTRA_INDEX_URL=https://…",
        ),
        retry=True,
    ),
    _cause(
        "RT042",
        r"Permission denied|Errno 13\b|Read-only file system|Errno 30\b",
        what="{engine} could not be installed: {folder} may not be written to",
        why="It belongs to another user, or its file system is read-only.",
        fix=(
            "see whom it belongs to:\nls -ld {folder}",
            "or put engines elsewhere:\nexport XDG_CACHE_HOME=/path/that/is/yours",
        ),
    ),
    _cause(
        "RT044",
        r"subprocess-exited-with-error|Failed building wheel|Failed to build|metadata-generation-failed",
        what="a package of {engine} would have to be compiled here, and that did not succeed",
        why="The index has no built wheel of it for this Python and processor.",
        fix=("see which one, and its compiler's words, in pip's log:\nless {log}",),
    ),
    _cause(
        "RT045",
        r"Configuration file could not be loaded|configuration file .* could not be loaded",
        what="pip cannot read its own configuration",
        why="{engine} is installed with the pip configuration of this machine.",
        fix=("see which files it reads:\npython3 -m pip config debug",),
    ),
)


def cause_of(lines: Sequence[str]) -> Cause | None:
    """The first row whose decisive words are in pip's output."""
    told = [line for line in lines if not _RETRIED.search(line)]
    return next((cause for cause in CAUSES if any(cause.decisive.search(line) for line in told)), None)


def evidence_of(lines: Sequence[str], cause: Cause | None) -> str:
    """The lines that show the cause, else pip's last ones; at most five, without repetition."""
    spoken = [line.strip() for line in lines if line.strip() and not _NOISE.match(line)]
    decisive = [line for line in spoken if cause is not None and cause.decisive.search(line)]
    errors = [line for line in spoken if line.startswith(("ERROR", "error"))]
    chosen = list(dict.fromkeys(decisive[-3:] + errors[-2:])) or spoken[-EVIDENCE_LINES:]
    return "\n".join(line[:300] for line in chosen[:EVIDENCE_LINES])
