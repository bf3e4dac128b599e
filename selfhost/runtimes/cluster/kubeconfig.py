"""Which cluster is meant: the kubeconfig, its contexts, and what is wrong with them. Asks no cluster."""

import difflib
import shlex
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from selfhost.core.errors import EnvironmentMissing, InputError

IN_POD = "in-pod"
"""Stands for the context where the account of a pod is used."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Chosen:
    """One context. `files` as KUBECONFIG has them; empty inside a pod."""

    files: str
    context: str
    namespace: str
    """Of the context; empty where it names none."""
    user: Mapping[str, Any]
    server: str = ""


def choose(context: str, env: Mapping[str, str]) -> Chosen:
    """Raises EnvironmentMissing where there is no kubeconfig or a broken one, InputError for an unknown context."""
    files = env.get("KUBECONFIG") or str(Path(env.get("HOME", "/")) / ".kube" / "config")
    found = [path for path in files.split(":") if path and Path(path).is_file()]
    if not found:
        if env.get("KUBERNETES_SERVICE_HOST") and not context:
            return Chosen(files="", context=IN_POD, namespace=_pod_namespace(), user={})
        raise _none(files, named="KUBECONFIG" in env)
    whole = [_read(path) for path in found]
    contexts = _named(whole, "contexts", "context")
    current = context or next((str(one["current-context"]) for one in whole if one.get("current-context")), "")
    if not current:
        raise InputError(
            "the kubeconfig names no current context",
            why=f"It lies in {':'.join(found)} and has {_list(sorted(contexts))}.",
            fix=(_pick(sorted(contexts)),),
            id="RT132",
        )
    if current not in contexts:
        raise _unknown(current, sorted(contexts), ":".join(found), asked=bool(context))
    chosen = contexts[current]
    clusters, users = _named(whole, "clusters", "cluster"), _named(whole, "users", "user")
    for what, name, known in (
        ("cluster", chosen.get("cluster"), clusters),
        ("user", chosen.get("user"), users),
    ):
        if name and name not in known:
            raise _broken(":".join(found), f"the context `{current}` names the {what} `{name}`, which it does not have")
    return Chosen(
        files=":".join(found),
        context=current,
        namespace=str(chosen.get("namespace") or ""),
        user=users.get(str(chosen.get("user")), {}),
        server=str(clusters.get(str(chosen.get("cluster")), {}).get("server") or ""),
    )


def _read(path: str) -> Mapping[str, Any]:
    import yaml  # at use

    try:
        text = Path(path).read_text(encoding="utf-8")
        tree = yaml.load(text, Loader=yaml.SafeLoader)
    except PermissionError:
        raise EnvironmentMissing(
            f"the kubeconfig {path} can't be read",
            why="Another user owns it.",
            fix=(f"k3s, for instance, writes it for root; take a copy of your own:\n{_copy(path)}",),
            id="RT131",
        ) from None
    except (OSError, UnicodeDecodeError, yaml.YAMLError) as error:
        raise _broken(path, str(error).replace("\n", " ")) from None
    if not isinstance(tree, dict):
        raise _broken(path, "it is empty or no mapping")
    return tree


def _named(files: Sequence[Mapping[str, Any]], key: str, inner: str) -> dict[str, Mapping[str, Any]]:
    """As kubectl merges several files: the first one that has a name wins."""
    found: dict[str, Mapping[str, Any]] = {}
    for one in files:
        for entry in one.get(key) or ():
            if isinstance(entry, dict) and isinstance(entry.get("name"), str):
                body = entry.get(inner)
                found.setdefault(entry["name"], body if isinstance(body, dict) else {})
    return found


def _pod_namespace() -> str:
    try:
        return Path("/var/run/secrets/kubernetes.io/serviceaccount/namespace").read_text(encoding="utf-8").strip()
    except OSError:
        return ""


def _none(files: str, *, named: bool) -> EnvironmentMissing:
    where = "KUBECONFIG names" if named else "nothing else is named, and the usual place is"
    return EnvironmentMissing(
        "there is no kubeconfig, so no cluster is known",
        why=f"{where} {files}, and no such file is there.",
        fix=(
            "say where it is:\nexport KUBECONFIG=/path/to/kubeconfig",
            "k3s keeps its own here:\nexport KUBECONFIG=/etc/rancher/k3s/k3s.yaml",
        ),
        id="RT130",
    )


def _broken(path: str, why: str) -> EnvironmentMissing:
    return EnvironmentMissing(
        f"the kubeconfig {path} is broken",
        why=f"{why[:1].upper()}{why[1:]}.",
        fix=(f"see what kubectl makes of it:\nkubectl config view --kubeconfig {shlex.quote(path.partition(':')[0])}",),
        id="RT131",
    )


def _unknown(context: str, known: Sequence[str], where: str, *, asked: bool) -> InputError:
    near = difflib.get_close_matches(context, known, n=1, cutoff=0.5)
    what = f"there is no context `{context}`" if asked else f"the current context `{context}` does not exist"
    return InputError(
        f"{what}{f'; perhaps `{near[0]}`' if near else ''}",
        why=f"{where} has {_list(known)}.",
        fix=(_pick(near or known),),
        id="RT132",
    )


def _list(names: Sequence[str]) -> str:
    shown = ", ".join(f"`{name}`" for name in names[:8])
    return f"{shown}{f' and {len(names) - 8} more' if len(names) > 8 else ''}" if names else "none"


def _pick(names: Sequence[str]) -> str:
    if not names:
        return "add one, as your cluster's provider tells; then see it:\nkubectl config get-contexts"
    return f"name one:\nselfhost up MODEL --runtime kubernetes --kube-context {shlex.quote(names[0])}"


def _copy(path: str) -> str:
    return (
        f"mkdir -p ~/.kube && sudo cp {shlex.quote(path)} ~/.kube/selfhost && sudo chown $USER ~/.kube/selfhost\n"
        "export KUBECONFIG=~/.kube/selfhost"
    )
