"""Secrets that selfhost makes: the key of clients, and the hub's token. Never on a command line, never in a log."""

import base64
from collections.abc import Mapping
from typing import Any

from selfhost.core.errors import EnvironmentMissing
from selfhost.runtimes.cluster.answers import ApiError
from selfhost.runtimes.cluster.client import Cluster
from selfhost.runtimes.cluster.owners import NAME_LABEL, is_ours

KEY_FIELD = "api-key"
TOKEN_FIELD = "HF_TOKEN"  # noqa: S105 -- the field's name


def held_key(cluster: Cluster, secret: str) -> str:
    """The key in a Secret that the user named. Raises EnvironmentMissing where there is none."""
    found = cluster.find(_path(cluster, secret))
    held = _value(found, KEY_FIELD) if found is not None else ""
    if held:
        return held
    missing = "there is no Secret" if found is None else f"there is no `{KEY_FIELD}` in the Secret"
    raise EnvironmentMissing(
        f"{missing} `{secret}` in {cluster.namespace}",
        why=f"selfhost.yaml names it as the one that holds the key of clients, under `{KEY_FIELD}`.",
        fix=(
            (
                f"make it, with the key in a file of yours:\n{cluster.kubectl} create secret generic {secret} "
                f"--namespace {cluster.namespace} --from-file={KEY_FIELD}=FILE"
            ),
        ),
        id="RT152",
    )


def ensure(cluster: Cluster, secret: str, field: str, value: str, *, name: str, release: str) -> str:
    """Make it, or keep what is there; returns the value that counts from now on.

    Raises EnvironmentMissing where a Secret of that name is somebody else's.
    """
    found = cluster.find(_path(cluster, secret))
    if found is None:
        body = _body(cluster, secret, {field: value}, name=name, release=release)
        try:
            cluster.request("POST", _path(cluster, ""), body)
        except ApiError as error:
            if error.status != 409:
                raise
            found = cluster.find(_path(cluster, secret))  # another `up` was faster
        else:
            return value
    if found is None or not is_ours(found, name):
        raise EnvironmentMissing(
            f"a Secret `{secret}` is in {cluster.namespace} already, and is not of this deployment",
            why=f"It does not carry the label {NAME_LABEL}={name}, so selfhost neither reads nor changes it.",
            fix=(
                f"see whose it is:\n{cluster.kubectl} get secret {secret} -n {cluster.namespace} --show-labels",
                "or say that it holds the key, in selfhost.yaml:\nkubernetes: {key_secret: " + secret + "}",
            ),
            id="RT152",
        )
    held = _value(found, field)
    if held:
        return held
    cluster.request(
        "PATCH", _path(cluster, secret), {"stringData": {field: value}}, content_type="application/merge-patch+json"
    )
    return value


def _path(cluster: Cluster, secret: str) -> str:
    return f"/api/v1/namespaces/{cluster.namespace}/secrets{f'/{secret}' if secret else ''}"


def _body(cluster: Cluster, secret: str, fields: Mapping[str, str], *, name: str, release: str) -> dict[str, Any]:
    return {
        "apiVersion": "v1",
        "kind": "Secret",
        "metadata": {
            "name": secret,
            "namespace": cluster.namespace,
            "labels": {
                NAME_LABEL: name,
                "app.kubernetes.io/instance": release,
                "app.kubernetes.io/part-of": "selfhost",
                "app.kubernetes.io/managed-by": "selfhost",
            },
        },
        "type": "Opaque",
        "stringData": dict(fields),
    }


def _value(one: Mapping[str, Any], field: str) -> str:
    raw = (one.get("data") or {}).get(field)
    try:
        return base64.b64decode(str(raw), validate=True).decode().strip() if raw else ""
    except ValueError:
        return ""
