"""Kubernetes objects of all texts together, with the pods and containers inside them. Pure."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from functools import cached_property

from selfhost.core.tree import Tree
from selfhost.shapes.finding import Place
from selfhost.shapes.workload import Workload
from selfhost.visibility.engine_size import value_of
from selfhost.visibility.images import engine_of, known
from selfhost.visibility.readers.inner import unwrapped
from selfhost.visibility.readers.kubernetes import launched
from selfhost.visibility.readers.kubernetes_objects import PodAt

CARDS = ("nvidia.com/", "amd.com/", "gpu.intel.com/", "habana.ai/")
_NO_CARDS = ("nvidia.com/gpumem", "nvidia.com/gpumem-percentage", "nvidia.com/gpucores")


@dataclass(frozen=True, slots=True)
class Container:
    """`wrapped` is as written; `workload` has the engine's own words where a shell starts it."""

    tree: Tree
    wrapped: Workload
    workload: Workload

    @property
    def name(self) -> str:
        return self.wrapped.name

    @property
    def init(self) -> bool:
        return bool(self.wrapped.pod and self.wrapped.pod.init)

    @property
    def whole(self) -> bool:
        """Not a patch of a manifest that stands elsewhere: what is missing is missing."""
        return not self.wrapped.opaque

    @property
    def engine(self) -> str:
        """`vllm` or `sglang` where this container serves a model by it; empty for anything else."""
        image = known(self.workload.image) if self.workload.image else None
        argv = self.workload.argv
        words = [word.rpartition("/")[2] for word in argv[:6]]
        named = "serve" in words or any(word.endswith(("api_server", "launch_server")) for word in words)
        by_image = not (image is not None and image.base) and (
            not argv or argv[0].startswith("-") or self.by_entrypoint
        )
        return (engine_of(self.workload) or "") if not self.init and (named or by_image) else ""

    @property
    def by_entrypoint(self) -> bool:
        """The image's own program runs, and gets the arguments."""
        return self.tree.at("command") is None

    @property
    def cards(self) -> dict[str, str]:
        """Cards that it asks the scheduler for, by resource, as written."""
        pod = self.wrapped.pod
        asked = {**pod.requests, **pod.limits} if pod else {}
        return {
            name: amount
            for name, amount in asked.items()
            if name.startswith(CARDS) and name not in _NO_CARDS and amount.strip() != "0"
        }

    def flag(self, *names: str) -> str | None:
        return value_of(self.workload.argv, names)

    def place(self, tree: Tree | None = None) -> Place:
        """Where `tree` stands, or the container itself."""
        return _place(tree if tree is not None else self.tree.at("name") or self.tree, self.wrapped.label)


@dataclass(frozen=True)
class Pod:
    """A pod, or the template of some."""

    at: PodAt
    containers: tuple[Container, ...]

    @property
    def holder(self) -> Tree:
        return self.at.holder

    @property
    def spec(self) -> Tree:
        return self.at.spec

    @property
    def kind(self) -> str:
        return self.holder.said("kind")

    @property
    def name(self) -> str:
        return self.holder.said("metadata", "name")

    @property
    def namespace(self) -> str:
        return self.holder.said("metadata", "namespace")

    @property
    def whole(self) -> bool:
        return bool(self.containers) and all(container.whole for container in self.containers)

    @property
    def engines(self) -> Iterator[Container]:
        return (container for container in self.containers if container.engine)

    @property
    def claims(self) -> bool:
        return self.spec.at("resourceClaims", 0) is not None

    @cached_property
    def _labels(self) -> dict[str, str]:
        tree = self.at.metadata.at("labels") if self.at.metadata is not None else None
        return {key: value.text for key, value in tree.items() if value.is_scalar} if tree is not None else {}

    def labels(self) -> dict[str, str]:
        return self._labels

    def cards(self) -> dict[str, int]:
        """How many cards one pod holds, where they are plain numbers."""
        found: dict[str, int] = {}
        for container in self.containers:
            for name, amount in container.cards.items():
                if amount.strip().isdecimal() and not container.init:
                    found[name] = found.get(name, 0) + int(amount)
        return found

    def place(self, tree: Tree | None = None) -> Place:
        return place(self.holder, tree)


@dataclass(frozen=True)
class Manifests:
    """Every object that was handed in, whatever file it stands in."""

    objects: tuple[Tree, ...]
    pods: tuple[Pod, ...] = field(default=())

    @staticmethod
    def of(trees: Sequence[Tree]) -> "Manifests":
        """Raises InputError for a value of another kind than its key takes."""
        pods: list[tuple[PodAt, list[Container]]] = []
        for at, tree, workload in launched(trees):
            if not pods or pods[-1][0] is not at:
                pods.append((at, []))
            pods[-1][1].append(Container(tree, workload, unwrapped(workload)))
        return Manifests(tuple(trees), tuple(Pod(at, tuple(containers)) for at, containers in pods))

    @cached_property
    def _kinds(self) -> dict[str, list[Tree]]:
        found: dict[str, list[Tree]] = {}
        for thing in self.objects:
            found.setdefault(thing.said("kind"), []).append(thing)
        return found

    def kind(self, *names: str) -> Iterator[Tree]:
        return (thing for name in names for thing in self._kinds.get(name, ()))

    @cached_property
    def containers(self) -> tuple[tuple[Pod, Container], ...]:
        return tuple((pod, container) for pod in self.pods for container in pod.containers)

    @cached_property
    def engines(self) -> tuple[tuple[Pod, Container], ...]:
        return tuple((pod, container) for pod, container in self.containers if container.engine)

    def named(self, kind: str, name: str, namespace: str) -> Tree | None:
        """One object by its name; two texts that differ in saying the namespace mean the same one."""
        for thing in self.kind(kind):
            own = thing.said("metadata", "namespace")
            if thing.said("metadata", "name") == name and (own == namespace or not own or not namespace):
                return thing
        return None


def label(thing: Tree) -> str:
    return f"{thing.said('kind')}/{thing.said('metadata', 'name') or thing.said('metadata', 'generateName')}"


def place(thing: Tree, tree: Tree | None = None) -> Place:
    """Where `tree` stands inside `thing`; the object's name, or the object, when there is none."""
    return _place(tree if tree is not None else thing.at("metadata", "name") or thing, label(thing))


def _place(tree: Tree, object: str) -> Place:
    return Place(path=tree.path, line=tree.line, column=tree.column, object=object)
