"""Names of the hub and of the registries, and the proxy on the way to them."""

import re
from collections.abc import Iterator, Mapping
from typing import Final

from selfhost.doctor.area import Seen, area
from selfhost.shapes.finding import Finding, Place, Severity
from selfhost.shapes.host import Known, Unknown

_PROXY_PAGE: Final = "https://www.python-httpx.org/environment_variables/"
_PROXY: Final = re.compile(r"(?:https?|socks5h?)://(?:[^@/\s]*@)?(?:\[[0-9a-fA-F:]+\]|[\w.-]+)(?::\d{1,5})?/?")
_LOCAL: Final = ("localhost", "127.0.0.1", "*", "127.0.0.0/8")


@area("network", order=90)
def network(seen: Seen) -> None:
    seen.findings.extend(_proxies(seen.look.proxies))
    known = {name: fact for name, fact in seen.look.names.items() if isinstance(fact, Known)}
    lost = [name for name, fact in known.items() if not fact.value]
    if seen.look.offline:
        seen.calm = f"offline by {seen.look.offline}"
        return
    if not known:
        reasons = {fact.reason for fact in seen.look.names.values() if isinstance(fact, Unknown)}
        seen.unknowns.append(f"names were not looked up: {', '.join(sorted(reasons)) or 'nothing was recorded'}")
        return
    # A proxy looks the names up itself: that they do not resolve here says nothing then.
    proxied = any(name.lower() in ("https_proxy", "all_proxy") and text for name, text in seen.look.proxies.items())
    if proxied:
        seen.calm = "by a proxy, which looks names up itself"
    elif lost:
        seen.findings.append(_lost(seen, known, lost))
    else:
        seen.calm = "the hub's and the registries' names resolve"


def _lost(seen: Seen, known: Mapping[str, Known[bool]], lost: list[str]) -> Finding:
    everything = len(lost) == len(known)
    hub = seen.look.hub in lost
    what = "no name of a hub or registry resolves" if everything else f"{', '.join(lost)} does not resolve"
    return Finding(
        id="HX601",
        severity=Severity.WARNING if hub or everything else Severity.INFO,
        title=what,
        evidence="\n".join(f"{known[name].how}: nothing" for name in lost),
        why="Layer: network. "
        + (
            "This machine is offline or has no name server; what is already here still serves."
            if everything
            else "What lies there cannot be fetched; the others can be reached."
        ),
        fix=(
            "see which name server is asked, or name a proxy:\ncat /etc/resolv.conf\nexport https_proxy=http://HOST:PORT",
        ),
        source="https://man7.org/linux/man-pages/man5/resolv.conf.5.html",
    )


def _proxies(proxies: Mapping[str, str]) -> Iterator[Finding]:
    for name, text in proxies.items():
        if name.lower() != "no_proxy" and text and not _PROXY.fullmatch(text):
            yield _proxy(
                "HX602",
                f"{name} is no address of a proxy",
                name,
                why="It takes a scheme, a host and a port; without them some clients fail and others pass it by.",
                fix=f"write it whole:\nexport {name}=http://HOST:PORT",
            )
    for lower in sorted({name.lower() for name in proxies}):
        small, large = proxies.get(lower), proxies.get(lower.upper())
        if small is not None and large is not None and small != large:
            yield _proxy(
                "HX603",
                f"{lower} and {lower.upper()} differ",
                lower,
                why="Some clients read the one and some the other, so one command gets through and the next does not.",
                fix=f'make them equal:\nexport {lower.upper()}="${lower}"',
            )
    spared = " ".join(proxies.get(name, "") for name in ("no_proxy", "NO_PROXY"))
    if any(text for name, text in proxies.items() if name.lower() != "no_proxy") and not any(
        word in re.split(r"[,\s]+", spared) for word in _LOCAL
    ):
        yield _proxy(
            "HX604",
            "a proxy is set and localhost is not spared",
            "no_proxy",
            why="Requests to an engine on this very machine then go to the proxy, which does not know it.",
            fix='spare this machine:\nexport no_proxy="localhost,127.0.0.1,::1${no_proxy:+,$no_proxy}"',
        )


def _proxy(id: str, title: str, name: str, *, why: str, fix: str) -> Finding:
    """Never with its value: a proxy's address may hold a password."""
    return Finding(
        id=id,
        severity=Severity.WARNING,
        title=title,
        place=Place(object=name),
        why=f"Layer: network. {why}",
        fix=(fix,),
        source=_PROXY_PAGE,
    )
