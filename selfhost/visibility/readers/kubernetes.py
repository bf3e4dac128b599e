"""Kubernetes objects → one Workload per container of every pod in them."""

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Final

from selfhost.core.errors import InputError
from selfhost.core.tree import Tree
from selfhost.core.yaml import documents
from selfhost.shapes.workload import ContainerEngine, Form, PodFacts, Toleration, Workload
from selfhost.visibility.files import NO_FILES, Files
from selfhost.visibility.readers.helm_template import is_template, not_filled_in, not_rendered
from selfhost.visibility.readers.kinds import check_container, check_pod
from selfhost.visibility.readers.kubernetes_claims import Known, known, used
from selfhost.visibility.readers.kubernetes_env import environment, expanded
from selfhost.visibility.readers.kubernetes_mounts import mounts
from selfhost.visibility.readers.kubernetes_objects import PodAt, objects, pods
from selfhost.visibility.readers.placed import Placed
from selfhost.visibility.readers.run import filled

_CONTAINERS: Final = ("initContainers", "containers", "ephemeralContainers")
_DEFAULT_NAME: Final = "kserve-container"
_LONGEST: Final = 2**20
"""Letters of a command; behind them no reference is filled in."""
_CAPABILITIES: Final = (("add", "cap-add"), ("drop", "cap-drop"))


def read(text: str, *, path: str, files: Files) -> tuple[Workload, ...]:
    """Containers in the order of the text. Raises InputError for a text that is no YAML, or a template of one."""
    del files  # a manifest names none
    if is_template(text):
        raise not_rendered(text, path)
    found = tuple(objects(_parsed(text, path)))
    return tuple(workload for _, _, workload in launched(found))


def read_objects(text: str, *, path: str) -> tuple[Tree, ...]:
    """The objects themselves, those inside lists too. Raises InputError as `read` does."""
    if is_template(text):
        raise not_rendered(text, path)
    return tuple(objects(_parsed(text, path)))


def launched(found: Sequence[Tree]) -> Iterator[tuple[PodAt, Tree, Workload]]:
    """Every container with the pod around it; ConfigMaps and claims are looked for among all of `found`."""
    beside = known(found)
    for holder in found:
        for pod in pods(holder):
            for container, workload in _of(pod, beside, holder.path):
                yield pod, container, workload


def _parsed(text: str, path: str) -> tuple[Tree, ...]:
    """A place-holder in braces (`{{ .Tag }}`, `{{TOKEN}}`) is what most often breaks a text that is no mistake."""
    try:
        return documents(text, path=path)
    except InputError as error:
        line = error.place.line if error.place and error.place.line else 0
        if line and "{{" in text.split("\n")[line - 1]:
            raise not_filled_in(text, path, line) from None
        raise


def _of(pod: PodAt, beside: Known, path: str) -> Iterator[tuple[Tree, Workload]]:
    check_pod(pod.spec)
    for key in _CONTAINERS:
        listed = pod.spec.at(key)
        for container in listed.elements() if listed is not None else ():
            if container.map is not None:
                yield container, _Container(pod, container, beside, path, init=key == "initContainers").workload()
    model = pod.spec.at("model")  # of a KServe predictor
    if model is not None and model.map is not None:
        yield model, _Container(pod, model, beside, path, init=False).workload()


class _Container:
    def __init__(self, pod: PodAt, container: Tree, beside: Known, path: str, *, init: bool) -> None:
        self.pod = pod
        self.container = container
        self.beside = beside
        self.path = path
        self.init = init
        self.namespace = pod.holder.said("metadata", "namespace")
        self.draft = Placed(files=NO_FILES, own=path)

    def workload(self) -> Workload:
        draft, container, spec = self.draft, self.container, self.pod.spec
        check_container(container)
        named = container.at("name")
        draft.mark_tree("name", named if named is not None and named.text else container)
        self._places()
        environment(draft, container, self.namespace, self.beside)
        mounts(draft, container, spec)
        self._security()
        argv = self._argv()
        image = container.at("image")
        if image is not None:
            draft.mark_tree("image", image)
        elif container.at("modelFormat") is None:
            draft.opaque.append("the manifest that this patches")  # a container of its own has an image
        said = Workload(
            name=container.said("name") or _DEFAULT_NAME,
            argv=argv,
            path=self.path,
            form=Form.POD,
            container_engine=ContainerEngine.KUBERNETES,
            image=container.said("image"),
        )
        return replace(
            filled(said, draft),
            ipc="host" if spec.yes("hostIPC") else "",
            pid="host" if spec.yes("hostPID") else "",
            network="host" if spec.yes("hostNetwork") else "",
            ports=tuple(self._ports()),
            pod=self._facts(),
        )

    def _places(self) -> None:
        """Where lists stand as a whole, and what has no reader of its own."""
        for tree, key, spot_key in (
            (self.container, "env", "env"),
            (self.container, "envFrom", "env_file"),
            (self.container, "volumeMounts", "mounts"),
            (self.container, "securityContext", "security_opt"),
            (self.pod.spec, "tolerations", "tolerations"),
            (self.pod.spec, "nodeSelector", "node_selector"),
        ):
            if tree.at(key) is not None:
                self.draft.mark_spot(spot_key, tree.key_spot(key))
        for key, spot_key in (
            ("hostIPC", "ipc"),
            ("hostPID", "pid"),
            ("hostNetwork", "network"),
            ("runtimeClassName", "runtime_class"),
            ("nodeName", "node_name"),
        ):
            value = self.pod.spec.at(key)
            if value is not None:
                self.draft.mark_tree(spot_key, value)

    def _argv(self) -> tuple[str, ...]:
        """`command` replaces the image's entrypoint and `args` its command, so both are the words that run."""
        words: list[str] = []
        filled_in = 0
        for key in ("command", "args"):
            listed = self.container.at(key)
            for element in listed.elements() if listed is not None else ():
                if element.is_scalar:
                    self.draft.mark_tree(f"argv.{len(words)}", element)
                    known = self.draft.env if filled_in < _LONGEST else {}
                    words.append(expanded(element.text, known)[0])
                    filled_in += len(words[-1])
            if listed is not None and words and "argv" not in self.draft.at:
                self.draft.mark_spot("argv", self.container.key_spot(key))
        return tuple(words)

    def _security(self) -> None:
        """The container's own words over those of the pod."""
        draft = self.draft
        privileged = self.container.at("securityContext", "privileged")
        if privileged is not None:
            draft.privileged = privileged.yes()
            draft.mark_tree("privileged", privileged)
        user = self._over("runAsUser")
        if user is not None:
            draft.option("user", user)
        for key, option in _CAPABILITIES:
            listed = self.container.at("securityContext", "capabilities", key)
            if listed is not None:
                draft.options(option, listed)

    def _over(self, *keys: str) -> Tree | None:
        own = self.container.at("securityContext", *keys)
        return own if own is not None and not own.is_null else self.pod.spec.at("securityContext", *keys)

    def _groups(self) -> Iterator[int]:
        """`fsGroup` is one of them, as the API says."""
        listed, fs_group = (self.pod.spec.at("securityContext", key) for key in ("supplementalGroups", "fsGroup"))
        for tree in (*(listed.elements() if listed is not None else ()), fs_group):
            if tree is not None and isinstance(number := tree.scalar, int):
                yield int(number)

    def _ports(self) -> Iterator[str]:
        listed = self.container.at("ports")
        for port in listed.elements() if listed is not None else ():
            inner, outer = port.said("containerPort"), port.said("hostPort")
            if inner:
                yield f"{outer}:{inner}" if outer else inner

    def _facts(self) -> PodFacts:
        holder, spec = self.pod.holder, self.pod.spec
        claims, classes = used(self.container, spec, self.namespace, self.beside)
        listed = self.container.at("resources", "claims")
        for number, claim in enumerate(listed.elements() if listed is not None else ()):
            self.draft.mark_tree(f"claims.{number}", claim)
        limits = self._amounts(self.container, "limits")
        requests = self._amounts(self.container, "requests")
        pods_own = self._amounts(spec, "requests", prefix="pod_resources")
        pods_own |= self._amounts(spec, "limits", prefix="pod_resources")
        seccomp = self._over("seccompProfile", "type")
        return PodFacts(
            kind=holder.said("kind"),
            name=holder.said("metadata", "name") or holder.said("metadata", "generateName"),
            limits=limits,
            requests=requests,
            pod_resources=pods_own,
            claims=claims,
            claim_classes=classes,
            runtime_class=spec.said("runtimeClassName"),
            runtime_classes=self.beside.runtime_classes,
            node_selector=_texts(spec.at("nodeSelector")),
            node_name=spec.said("nodeName"),
            tolerations=_tolerations(spec.at("tolerations")),
            init=self.init,
            host_ipc=spec.yes("hostIPC"),
            seccomp=seccomp.text if seccomp is not None else "",
            supplemental_groups=tuple(self._groups()),
            annotations=self._annotations(),
            namespace=self.namespace,
        )

    def _amounts(self, tree: Tree, kind: str, prefix: str = "") -> dict[str, str]:
        found = tree.at("resources", kind)
        resources = tree.at("resources")
        if found is None or resources is None:
            return {}
        self.draft.mark_spot(prefix or kind, resources.key_spot(kind))
        for name, amount in found.items():
            self.draft.mark_tree(f"{prefix or kind}.{name}", amount)
        return _texts(found)

    def _annotations(self) -> dict[str, str]:
        found = self.pod.metadata.at("annotations") if self.pod.metadata is not None else None
        for name, value in found.items() if found is not None else ():
            self.draft.mark_tree(f"annotations.{name}", value)
        return _texts(found)


def _texts(tree: Tree | None) -> dict[str, str]:
    return {key: value.text for key, value in tree.items() if value.is_scalar} if tree is not None else {}


def _tolerations(tree: Tree | None) -> tuple[Toleration, ...]:
    found: Sequence[Tree] = tuple(tree.elements()) if tree is not None else ()
    return tuple(
        Toleration(
            key=each.said("key"),
            operator=each.said("operator") or "Equal",
            value=each.said("value"),
            effect=each.said("effect"),
        )
        for each in found
    )
