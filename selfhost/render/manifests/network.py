"""What may speak to what. As the chart's networkpolicy.yaml and _network.tpl."""

import re
from collections.abc import Iterator, Sequence

from selfhost.render.manifests.around import Object, Release

_WEB = (80, 443)
_OWN_PORT = re.compile(r"^https?://[^/]*:([0-9]+)(?:/|$)")
_PROXY = re.compile(r"^(?:https?|all|ftp)_proxy$", re.IGNORECASE)
_PORT_OF_PROXY = re.compile(r"^(?:[a-z0-9]+://)?[^/]*:([0-9]+)(?:/|$)")
_CREDENTIALS = {
    "0.0.0.0/0": ["169.254.0.0/16", "168.63.129.16/32", "100.100.100.200/32"],
    "::/0": ["fd00:ec2::254/128", "fd00:ec2::23/128"],
}
"""By all addresses of a family those that hand out a cloud's credentials: AWS, Google, Azure, Alibaba."""


def policies(release: Release) -> Iterator[Object]:
    found = release.values["networkPolicy"]
    if not found["enabled"]:
        return
    yield _policy(release, "engine", release.full, [_into(release)], _web(_WEB) if found["egress"] else [])
    if release.values["fetch"]["enabled"]:
        yield _policy(release, "fetch", f"{release.full}-fetch", [], _web(_ports(release)))


def _policy(release: Release, component: str, name: str, into: list[Object], out: list[Object]) -> Object:
    return {
        "apiVersion": "networking.k8s.io/v1",
        "kind": "NetworkPolicy",
        "metadata": release.metadata(component, name),
        "spec": {
            "podSelector": {"matchLabels": release.component(component)},
            "policyTypes": ["Ingress", "Egress"],
            "ingress": into,
            "egress": out,
        },
    }


def _into(release: Release) -> Object:
    values = release.values
    found = values["networkPolicy"]
    who = list(found["from"]) or [{"podSelector": {}}]
    who += [
        {"namespaceSelector": {"matchLabels": {"kubernetes.io/metadata.name": name}}} for name in found["namespaces"]
    ]
    if values["test"]["enabled"] and found["from"]:
        who.append({"podSelector": {"matchLabels": release.component("test")}})
    return {"ports": [{"protocol": "TCP", "port": int(values["engine"]["port"])}], "from": who}


def _web(ports: Sequence[int]) -> list[Object]:
    """Names and the web, without the addresses that hand out a cloud's credentials."""
    return [
        {"ports": [{"protocol": "UDP", "port": 53}, {"protocol": "TCP", "port": 53}]},
        {
            "ports": [{"protocol": "TCP", "port": port} for port in ports],
            "to": [
                {"namespaceSelector": {}},
                *({"ipBlock": {"cidr": cidr, "except": list(those)}} for cidr, those in _CREDENTIALS.items()),
            ],
        },
    ]


def _ports(release: Release) -> list[int]:
    """The web's, a mirror's and a proxy's own."""
    job = release.values["fetch"]
    said = {**job["env"], "endpoint": job["endpoint"]}
    patterns = {name: _PORT_OF_PROXY if _PROXY.match(name) else _OWN_PORT for name in sorted(said)}
    own = [int(match[1]) for name, own_port in patterns.items() if (match := own_port.match(str(said[name])))]
    return list(dict.fromkeys([*_WEB, *own]))
