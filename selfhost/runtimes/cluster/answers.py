"""What an API server answers when it does not do what it was asked, and what stands for no answer at all."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any


class ApiError(Exception):
    """An HTTP answer that is no success, with the fields of its `Status`."""

    def __init__(
        self, status: int, *, reason: str = "", message: str = "", details: Mapping[str, Any] | None = None
    ) -> None:
        super().__init__(f"{status} {reason}: {message}" if message else f"{status} {reason}")
        self.status = status
        self.reason = reason
        """`Forbidden`, `Conflict`, `Invalid`, `NotFound`, `Expired`…"""
        self.message = message
        self.details = dict(details or {})

    @property
    def causes(self) -> tuple["Cause", ...]:
        found = self.details.get("causes")
        return tuple(
            Cause(
                reason=str(one.get("reason") or ""),
                message=str(one.get("message") or ""),
                field=str(one.get("field") or ""),
            )
            for one in (found if isinstance(found, list) else ())
            if isinstance(one, Mapping)
        )


class NoAnswer(Exception):
    """Nobody answered. `kind`: `unreachable`, `timeout`, `tls`, `closed`."""

    def __init__(self, kind: str, why: str) -> None:
        super().__init__(why)
        self.kind = kind
        self.why = why


class NotServed(Exception):
    """The server has no such kind: a CustomResourceDefinition that is not installed, or an API of another version."""

    def __init__(self, api_version: str, kind: str) -> None:
        super().__init__(f"{kind} of {api_version} is not served")
        self.api_version = api_version
        self.kind = kind


@dataclass(frozen=True, slots=True, kw_only=True)
class Cause:
    reason: str
    message: str
    field: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Resource:
    """Where the objects of one kind are found: `/apis/apps/v1`, `deployments`."""

    base: str
    plural: str
    namespaced: bool
    verbs: frozenset[str] = field(default_factory=frozenset)

    def path(self, namespace: str, name: str = "") -> str:
        where = f"{self.base}/namespaces/{namespace}/{self.plural}" if self.namespaced else f"{self.base}/{self.plural}"
        return f"{where}/{name}" if name else where

    @property
    def group(self) -> str:
        parts = self.base.split("/")
        return parts[2] if parts[1] == "apis" else ""
