"""What one service asks for, its own keys before the defaults, each with the line that it stands in."""

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from selfhost.core.tree import Tree
from selfhost.shapes.cluster import ClusterAsk
from selfhost.shapes.service import Envelope, ReasoningAsk, ReasoningMode, Service
from selfhost.shapes.workload import Spot, Toleration
from selfhost.stack.words import spot_of

if TYPE_CHECKING:
    from selfhost.stack import schema


@dataclass(frozen=True, slots=True, kw_only=True)
class Asked:
    """`given` has only keys that were said, as schema.py's values; `spots` where each stands."""

    name: str
    spot: Spot
    path: str
    given: dict[str, Any]
    spots: dict[str, Spot] = field(default_factory=dict)
    wrong: frozenset[str] = frozenset()
    """Keys that were said, and wrongly: they are no longer in `given`."""

    def spot_of(self, key: str, inner: str = "") -> Spot:
        """Of a key, or of one inside its map; of the service where nobody said it."""
        return self.spots.get(f"{key}.{inner}", self.spots.get(key, self.spot))

    def origin(self, key: str, words: str = "") -> str:
        """`selfhost.yaml:12 context`."""
        return f"{self.path}:{self.spots.get(words, self.spot_of(key)).line} {words or key}"


def asked_of(form: "schema.SelfhostYaml", root: Tree, *, path: str) -> Iterator[Asked]:
    """Each service over the defaults."""
    common = _given(form.defaults)
    for name, own in form.services.items():
        given = {**common, **_given(own)}
        from_ = {key: ("services", name) if key in own.model_fields_set else ("defaults",) for key in given}
        spots = {}
        for key, loc in from_.items():
            spots[key] = spot_of((*loc, key), root)
            inner = root.at(*loc, key)
            for word in inner.keys if inner is not None else ():
                spots[f"{key}.{word}"] = spot_of((*loc, key, word), root)
        said = {key for tree in (root.at("defaults"), root.at("services", name)) if tree for key in tree.keys}
        yield Asked(
            name=name,
            spot=spot_of(("services", name), root),
            path=path,
            given=given,
            spots=spots,
            wrong=frozenset(said - given.keys()),
        )


def _given(form: "schema.Service | None") -> dict[str, Any]:
    """In the order of the form, not of the set."""
    fields = type(form).model_fields if form is not None else ()
    return {key: getattr(form, key) for key in fields if form is not None and key in form.model_fields_set}


def service_of(asked: Asked) -> Service:
    """The request, as the command line makes one."""
    given = asked.given
    envelope: schema.Envelope | None = given.get("envelope")
    context, concurrency, derived = _from_envelope(asked)
    precision: schema.Precision | None = given.get("precision")
    cluster: schema.Kubernetes | None = given.get("kubernetes")
    origins = {
        "service": f"{asked.path}:{asked.spot.line} {asked.name}",
        "name": f"{asked.path}:{asked.spot.line} name",
        **{_FIELDS.get(key, key): asked.origin(key) for key in given if key not in _APART},
        **({"envelope": asked.origin("envelope")} if envelope else {}),
        **({"cluster": asked.origin("kubernetes")} if cluster else {}),
        **derived,
    }
    if precision is not None and precision.weights is not None:
        origins["precision"] = asked.origin("precision")
    if precision is not None and precision.kv is not None:
        origins["kv_cache"] = asked.origin("precision", "precision.kv")
    return Service(
        model=given.get("model", ""),
        name=asked.name,
        device=_device(given.get("devices")),
        port=given.get("port"),
        context=context,
        concurrency=concurrency,
        reasoning=_reasoning(given.get("reasoning")),
        precision=precision.weights if precision else None,
        kv_cache=precision.kv if precision else None,
        kv_skip_layers=tuple(given.get("kv_skip_layers", ())),
        engine=given.get("engine"),
        trust_remote_code=given.get("trust_remote_code", False),
        allow_pickle=given.get("allow_pickle", False),
        engine_args=tuple(given.get("engine_args", ())),
        engine_env=dict(given.get("engine_env", {})),
        runtime=given.get("runtime"),
        cluster=_cluster(cluster),
        image=given.get("image", ""),
        share=given.get("share"),
        media_domains=tuple(given.get("media_domains", ())),
        context_ceiling=given.get("context_ceiling"),
        envelope=_envelope(envelope),
        origins=origins,
    )


_FIELDS = {"devices": "device"}
_APART = ("model", "precision", "envelope", "kubernetes")
"""Keys whose values have origins of their own, or none."""


def _cluster(form: "schema.Kubernetes | None") -> ClusterAsk | None:
    if form is None:
        return None
    tolerations = tuple(
        Toleration(key=one.key or "", operator=one.operator, value=one.value or "", effect=one.effect or "")
        for one in form.tolerations or ()
    )
    return ClusterAsk(
        context=form.context or "",
        namespace=form.namespace or "",
        existing_claim=form.existing_claim or "",
        sub_path=form.sub_path or "",
        storage_class=form.storage_class,
        runtime_class=form.runtime_class or "auto",
        replicas=form.replicas,
        hub_token_secret=form.hub_token_secret or "",
        key_secret=form.key_secret or "",
        image_pull_secrets=tuple(form.image_pull_secrets or ()),
        ca_config_map=form.ca_config_map or "",
        tolerations=tolerations,
        node_selector=dict(form.node_selector or {}),
        host=form.host or "",
        ingress_class=form.ingress_class or "",
        tls_secret=form.tls_secret or "",
    )


def _from_envelope(asked: Asked) -> tuple[int | None, int | None, dict[str, str]]:
    """Context and concurrency: those asked for, else those of the envelope, with their origins."""
    given, origins = asked.given, {}
    context, concurrency = given.get("context"), given.get("concurrency")
    envelope: schema.Envelope | None = given.get("envelope")
    if envelope is not None and context is None and envelope.isl is not None and envelope.osl is not None:
        context = envelope.isl + envelope.osl
        origins["context"] = asked.origin("envelope", "envelope.isl") + " + osl"
    if envelope is not None and concurrency is None and envelope.concurrency is not None:
        concurrency = envelope.concurrency
        origins["concurrency"] = asked.origin("envelope", "envelope.concurrency")
    return context, concurrency, origins


def _device(devices: list[str] | None) -> str | None:
    """None is selfhost's choice."""
    return None if devices is None or devices == ["auto"] else ",".join(devices)


def _reasoning(form: "schema.Reasoning | None") -> ReasoningAsk | None:
    if form is None:
        return None
    return ReasoningAsk(mode=ReasoningMode(form.mode), budget_tokens=form.budget_tokens, effort=form.effort)


def _envelope(form: "schema.Envelope | None") -> Envelope | None:
    if form is None:
        return None
    return Envelope(
        isl=form.isl,
        osl=form.osl,
        concurrency=form.concurrency,
        cache=form.cache or "",
        ttft_s=form.ttft.s if form.ttft else None,
        ttft_share=form.ttft.p if form.ttft else None,
        tpot_s=form.tpot.s if form.tpot else None,
        tpot_share=form.tpot.p if form.tpot else None,
        price_per_hour=form.price_per_hour,
    )
