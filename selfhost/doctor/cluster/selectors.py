"""Labels against what a pod wants of a node: selectors, affinity terms, tolerations. Pure."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from selfhost.doctor.cluster.tree import Object, part, rows, text, texts, words

_BLOCKING = ("NoSchedule", "NoExecute")


@dataclass(frozen=True, slots=True, kw_only=True)
class Mismatch:
    """One thing wanted of a node's labels and what the node has; `actual` is None for a label that is not there."""

    key: str
    wanted: str
    actual: str | None
    number: bool = False
    """`Gt` or `Lt` with a value that is no integer: no node ever meets it."""

    def __str__(self) -> str:
        has = f"has {self.actual}" if self.actual is not None else "is not labelled so"
        return f"{self.wanted} (it {has})"


def of_selector(pod: Object, labels: Mapping[str, str]) -> Iterator[Mismatch]:
    for key, value in texts(pod, "spec", "nodeSelector").items():
        if labels.get(key) != value:
            yield Mismatch(key=key, wanted=f"{key}={value}", actual=labels.get(key))


def of_affinity(pod: Object, labels: Mapping[str, str], node: str) -> tuple[Mismatch, ...]:
    """Terms are alternatives: of those, the one that lacks the least."""
    required = part(pod, "spec", "affinity", "nodeAffinity", "requiredDuringSchedulingIgnoredDuringExecution")
    return of_terms(required, labels, node)


def of_terms(required: Object, labels: Mapping[str, str], node: str) -> tuple[Mismatch, ...]:
    """`nodeSelectorTerms` of a pod or of a volume."""
    terms = rows(required, "nodeSelectorTerms")
    if not terms:
        return ()
    lacking = [tuple(_of_term(term, labels, node)) for term in terms]
    return min(lacking, key=len)


def _of_term(term: Object, labels: Mapping[str, str], node: str) -> Iterator[Mismatch]:
    for wish in rows(term, "matchExpressions"):
        found = _of_expression(wish, labels.get(text(wish, "key")))
        if found is not None:
            yield found
    for wish in rows(term, "matchFields"):
        found = _of_expression(wish, node)
        if found is not None:
            yield found


def _of_expression(wish: Object, actual: str | None) -> Mismatch | None:
    key, operator, values = text(wish, "key"), text(wish, "operator"), words(wish, "values")
    wanted = f"{key} {operator} {', '.join(values)}".rstrip()
    met = {
        "In": actual is not None and actual in values,
        "NotIn": actual is None or actual not in values,
        "Exists": actual is not None,
        "DoesNotExist": actual is None,
    }.get(operator)
    if met is None:
        return _compared(key, operator, wanted, values, actual)
    return None if met else Mismatch(key=key, wanted=wanted, actual=actual)


def _compared(key: str, operator: str, wanted: str, values: tuple[str, ...], actual: str | None) -> Mismatch | None:
    limit = _integer(values[0]) if values else None
    if limit is None:
        return Mismatch(key=key, wanted=wanted, actual=actual, number=True)
    has = _integer(actual) if actual is not None else None
    if has is not None and (has > limit if operator == "Gt" else has < limit):
        return None
    return Mismatch(key=key, wanted=wanted, actual=actual)


def _integer(value: str) -> int | None:
    try:
        return int(value)
    except ValueError:
        return None


def kept_away(pod: Object, node: Object) -> Iterator[tuple[str, str, str]]:
    """Key, value and effect of taints that the pod does not tolerate."""
    for taint in rows(node, "spec", "taints"):
        key, value, effect = text(taint, "key"), text(taint, "value"), text(taint, "effect")
        if effect in _BLOCKING and not any(
            _tolerates(one, key, value, effect) for one in rows(pod, "spec", "tolerations")
        ):
            yield key, value, effect


def _tolerates(toleration: Object, key: str, value: str, effect: str) -> bool:
    if text(toleration, "effect") not in ("", effect):
        return False
    wanted = text(toleration, "key")
    if (text(toleration, "operator") or "Equal") == "Exists":
        return wanted in ("", key)
    return wanted == key and text(toleration, "value") == value
