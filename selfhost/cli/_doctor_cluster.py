"""doctor's words about a cluster: which object is meant, and the cluster or the snapshot that it is in."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from selfhost.cli._context import Invocation
from selfhost.core.errors import EnvironmentMissing, InputError
from selfhost.doctor.area import Area
from selfhost.doctor.areas.kubernetes import cluster_area
from selfhost.doctor.cluster.state import Cluster
from selfhost.doctor.cluster.targets import is_target
from selfhost.shapes.finding import Severity

if TYPE_CHECKING:
    from selfhost.runtimes.cluster.record import Record


@dataclass(frozen=True, slots=True, kw_only=True)
class Meant:
    """What stood on the line. `target` is `pod/NAME` or a name; both empty is the whole namespace."""

    target: str = ""
    context: str | None = None
    namespace: str | None = None
    host: str | None = None

    @property
    def named(self) -> bool:
        """Whether a cluster is asked about at all, and not only this machine."""
        return bool(self.target) or self.context is not None or self.namespace is not None


@dataclass(frozen=True, slots=True, kw_only=True)
class InCluster:
    """`undecided`: the object that was asked about is not well, and nothing says why."""

    area: Area
    head: str
    undecided: bool = False


def split(words: Sequence[str], *, fix_script: bool, cluster: bool) -> tuple[str | None, str]:
    """The folder of --fix-script, and the object that is meant. Raises InputError for a word too many."""
    targets = [word for word in words if is_target(word)]
    rest = [word for word in words if not is_target(word)]
    folder = rest.pop(0) if rest and fix_script else None
    if rest and cluster and not targets:
        targets = [rest.pop(0)]
    extra = [*targets[1:], *rest[1:]] if rest or len(targets) > 1 else []
    if extra:
        raise InputError(
            f"doctor takes no `{extra[0]}` beside `{words[0]}`",
            why="It looks at one object at a time, and --fix-script writes into one folder.",
            fix=("look at all of them:\nselfhost doctor --namespace NAMESPACE",),
            id="CF115",
        )
    return (folder or (rest[0] if rest else None)), (targets[0] if targets else "")


def ours(at_work: Invocation, word: str | None) -> "Record | None":
    """Where a deployment of that name is, if it is one of ours in a cluster."""
    from selfhost.core.names import is_name
    from selfhost.runtimes.cluster.record import read

    if word is None or not is_name(word):
        return None
    try:
        return read(at_work.paths, word)
    except EnvironmentMissing:
        return None


def look_in_cluster(at_work: Invocation, meant: Meant) -> InCluster:
    """Raises InputError and EnvironmentMissing: no such object, no such snapshot, no way to the cluster."""
    if meant.host is not None:
        state, where = _recorded(at_work, meant)
        space = meant.namespace or ""
    else:
        state, where, space = _live(at_work, meant)
    area = cluster_area(state, target=meant.target, namespace=space)
    clear = not any(finding.severity is not Severity.INFO for finding in area.findings)
    return InCluster(
        area=area, head=where, undecided=bool(meant.target and area.unknowns and clear and not area.settled)
    )


def _recorded(at_work: Invocation, meant: Meant) -> tuple[Cluster, str]:
    from selfhost.cli._eyes import eyes

    if meant.context is not None:
        raise InputError(
            "--kube-context and --host both say where to look",
            why="A snapshot holds the objects of one cluster; a context is another one, asked now.",
            fix=("leave one of them out:\nselfhost doctor --kube-context CONTEXT pod/NAME",),
            id="CF117",
        )
    objects = eyes(at_work, host=meant.host, inside=None).kubernetes
    if not objects:
        raise InputError(
            f"{meant.host} holds no objects of a cluster",
            why="`kubernetes.objects` of a snapshot are what `kubectl get -o json` gives.",
            fix=("ask the cluster itself:\nselfhost doctor --kube-context CONTEXT pod/NAME",),
            id="CF118",
        )
    return Cluster(objects), ""


def _live(at_work: Invocation, meant: Meant) -> tuple[Cluster, str, str]:
    from selfhost.runtimes.cluster.client import Cluster as Asked
    from selfhost.runtimes.cluster.diagnosis import read_for_diagnosis
    from selfhost.runtimes.cluster.refusals import naming

    asked = Asked.connect(meant.context or "", _space(meant), env=at_work.env)
    with naming(asked, "look at the cluster"):
        read = read_for_diagnosis(asked)
    state = Cluster(read.objects, unread=read.unread, kubectl=asked.kubectl)
    return state, f"cluster {asked.context}, namespace {asked.namespace}", asked.namespace


def _space(meant: Meant) -> str:
    """`pod/NAMESPACE/NAME` names it too."""
    parts = meant.target.split("/")
    return meant.namespace or (parts[1] if len(parts) == 3 else "")
