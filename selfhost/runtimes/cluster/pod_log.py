"""The engine's output, as the cluster keeps it of its pod."""

from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from time import monotonic
from typing import Any

from selfhost.core.errors import SelfhostError
from selfhost.runtimes.cluster.answers import ApiError, NoAnswer, NotServed
from selfhost.runtimes.cluster.client import Cluster
from selfhost.runtimes.cluster.sight import ENGINE
from selfhost.runtimes.container_log import timed

LEAST_S = 1.0
"""Asked for no more often, however often somebody looks."""
Line = tuple[str, str]


@dataclass(slots=True)
class PodLog:
    """Asks again from the last second on each time, and gives what was not given before. Satisfies base.Log.

    `pod` tells which pod counts now, or nothing. What a container said before it was started again comes first.
    """

    cluster: Cluster
    release: str
    pod: Callable[[], str]
    _asked: float = 0.0
    _of: str = ""
    _since: str = ""
    _given: Counter[Line] = field(default_factory=Counter)

    @property
    def where(self) -> str:
        return f"{self.cluster.kubectl} logs deployment/{self.release} --namespace {self.cluster.namespace}"

    @property
    def exists(self) -> bool:
        return bool(self._pod())

    def more(self) -> str:
        now = monotonic()
        if now - self._asked < LEAST_S:
            return ""
        self._asked = now
        pod = self._pod()
        if not pod:
            return ""
        if pod != self._of:
            self._of, self._since = pod, ""
            self._given = Counter()
        try:
            lines = self._lines(pod, sinceTime=f"{self._since.partition('.')[0].rstrip('Z')}Z" if self._since else None)
        except (ApiError, NoAnswer):  # what is said meanwhile comes with the next answer
            return ""
        known, fresh = Counter(self._given), []
        for line in lines:
            if known[line]:
                known[line] -= 1
            else:
                fresh.append(line)
        if fresh:
            self._since = max(at for at, _ in lines)
            second = self._since.partition(".")[0]
            self._given = Counter(line for line in lines if line[0] >= second)
        return "".join(text for _, text in fresh)

    def last(self, lines: int | None) -> str:
        pod = self._pod()
        if not pod:
            return ""
        try:
            found = self._lines(pod, tailLines=lines)
            if not found or lines is None:
                found = [*self._before(pod, lines), *found]
        except (ApiError, NoAnswer) as error:
            return f"({self.where} gave no answer: {error})\n"
        return "".join(text for _, text in found)

    def _before(self, pod: str, lines: int | None) -> list[Line]:
        """What the container said that ended and was started again."""
        try:
            return self._lines(pod, previous=True, tailLines=lines)
        except ApiError:
            return []

    def _lines(self, pod: str, **query: Any) -> list[Line]:
        path = f"/api/v1/namespaces/{self.cluster.namespace}/pods/{pod}/log"
        try:
            return timed(self.cluster.text(path, container=ENGINE, timestamps=True, **query))
        except ApiError as error:
            if error.status in (400, 404):  # it was not started yet
                return []
            raise

    def _pod(self) -> str:
        try:
            return self.pod()
        except (ApiError, NoAnswer, NotServed, SelfhostError):
            return self._of
