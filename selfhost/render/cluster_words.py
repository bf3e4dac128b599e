"""What files for a cluster open with, and what their README says."""

import shlex
from collections.abc import Mapping

from selfhost.engines.base import engine
from selfhost.plan.cluster.values import DIGEST_DIGITS
from selfhost.plan.digest import digest_of
from selfhost.render.asking import asking
from selfhost.render.cluster_commands import commands_of, kubectl
from selfhost.render.escape import comment
from selfhost.render.manifests.around import Release
from selfhost.render.manifests.chart import merged
from selfhost.shapes.cluster import ClusterPlan
from selfhost.shapes.place import Place
from selfhost.shapes.plan import Decision, Evidence, Plan

_NOT_RUN = (
    "Files for this card were held against Helm and the API's schemas in selfhost's tests, not run on a GPU there."
)


def title(plan: Plan) -> str:
    where = plan.device_name if plan.build.backend != "cpu" else "processor"
    return f"{plan.name}: {plan.model.id} on {plan.build.engine} {plan.build.version}, {where}"


def head(plan: Plan, how: str) -> str:
    """Comment lines; `how` is the command that takes the file."""
    lines = (
        title(plan),
        f"plan {digest_of(plan)[:DIGEST_DIGITS]}",
        f"without selfhost: {how}; README.txt has the rest",
    )
    return "".join(f"# {comment(line)}\n" for line in lines)


def reasons_of(plan: Plan, cluster: ClusterPlan) -> Mapping[str, str]:
    """Those of the cluster's plan, and what the chosen precision changes."""
    changed = [
        f"{one.field} is {one.value}, which changes what the model computes: {one.reason}{_instead(one)}"
        for one in plan.decisions
        if one.changes_behaviour and one.field in ("precision", "KV cache")
    ]
    return {**cluster.reasons, **({"precision": "; ".join(changed)} if changed else {})}


def unpinned(plan: Plan, cluster: ClusterPlan) -> tuple[str, ...]:
    """What these files leave open, a line each; `selfhost lock` closes it."""
    tag = "" if _was_read(plan) else f"nobody looked whether {cluster.image} exists"
    return tuple(words for words in (tag, cluster.reasons.get("model", "")) if words)


def _instead(one: Decision) -> str:
    flag = "--precision" if one.field == "precision" else "--kv-cache"
    return f"; as published: `{flag} {one.alternatives[0]}`" if one.alternatives else ""


def facts(plan: Plan, cluster: ClusterPlan, values: dict[str, object], place: Place) -> dict[str, object]:
    """Values of a README; no secret is among them."""
    release = Release(name=cluster.release, values=merged(values))
    keyed = bool(engine(plan.build.engine).KEY_VARIABLE)
    secret = release.key_secret
    key = place.key_file or "key"
    own = secret if keyed and not cluster.ask.key_secret else ""
    return {
        "title": title(plan),
        "digest": digest_of(plan)[:DIGEST_DIGITS],
        "name": release.full,
        "keyed": keyed,
        "key_file": key,
        "make_key": _make_key(key) if own and not place.key_file else "",
        "make_secret": _make_secret(cluster, secret, key) if own else "",
        "make_hub_secret": _hub_secret(cluster),
        "look": ""
        if place.image_digest or _was_read(plan)
        else shlex.join(["docker", "manifest", "inspect", release.image]),
        **commands_of(cluster, full=release.full, claim=release.claim, secret=own),
        "forward": kubectl(cluster, "port-forward", f"service/{release.full}", f"{plan.port}:8000"),
        "chat_url": f"http://127.0.0.1:{plan.port}/v1/chat/completions",
        "header_file": f"{key}.header" if keyed and place.key_file else "",
        **asking(plan),
        "exceptions": list(cluster.exceptions),
        "root": not cluster.user,
        "group": plan.build.backend in ("rocm", "xpu"),
        "note": "" if plan.build.backend == "cpu" else _NOT_RUN,
    }


def _was_read(plan: Plan) -> bool:
    """A digest was: somebody pulled it."""
    pinned = plan.cluster is not None and "@" in plan.cluster.image
    return pinned or all(one.evidence is not Evidence.ASSUMED for one in plan.decisions if one.field == "image")


def _make_key(key: str) -> str:
    """Without a key on any command line; one that is there stays, since the Secret holds it."""
    code = "import secrets; print('sk-selfhost-' + secrets.token_urlsafe(32))"
    name = shlex.quote(key)
    return f"[ -e {name} ] || (umask 077; python3 -c {shlex.quote(code)} > {name})"


def _make_secret(cluster: ClusterPlan, secret: str, key: str) -> str:
    make = kubectl(cluster, "create", "secret", "generic", secret, "--from-file=api-key=/dev/stdin")
    return f"tr -d '\\n' < {shlex.quote(key)} | {make}"


def _hub_secret(cluster: ClusterPlan) -> str:
    name = cluster.ask.hub_token_secret
    if not name:
        return ""
    make = kubectl(cluster, "create", "secret", "generic", name, "--from-file=HF_TOKEN=/dev/stdin")
    return f"tr -d '\\n' < \"$HOME/.cache/huggingface/token\" | {make}"
