"""What is decided only for a cluster, each with its reason."""

from collections.abc import Iterator

from selfhost.core.errors import InputError
from selfhost.engines.base import engine
from selfhost.engines.names import shown
from selfhost.plan.cluster.allocation import Allocation, allocation_of
from selfhost.plan.cluster.amounts import PRESTOP_S, Amounts, amounts_of
from selfhost.plan.cluster.case import Case
from selfhost.plan.cluster.names import release_of, with_registry
from selfhost.plan.cluster.remarks import remarks_of
from selfhost.plan.cluster.runtime_class import RuntimeClass, runtime_class_of
from selfhost.plan.cluster.security import STANDARD, Security, security_of
from selfhost.plan.cluster.storage import Storage, storage_of
from selfhost.plan.command_line import command_line
from selfhost.plan.devices import Devices
from selfhost.shapes.cluster import ClusterPlan
from selfhost.shapes.plan import Decision, Evidence
from selfhost.shapes.units import format_bytes

_PROBES = "https://kubernetes.io/docs/concepts/configuration/liveness-readiness-startup-probes/"
_PLUGINS = "https://kubernetes.io/docs/concepts/extend-kubernetes/compute-storage-net/device-plugins/"
_CLAIMS = "https://kubernetes.io/docs/concepts/scheduling-eviction/dynamic-resource-allocation/"
_CLASSES = "https://docs.k3s.io/advanced#nvidia-container-runtime"
_ROLLOUT = "https://kubernetes.io/docs/concepts/workloads/controllers/deployment/#max-unavailable"


def cluster_plan(case: Case) -> tuple[ClusterPlan, tuple[Decision, ...]]:
    """Raises InputError for what no cluster can do."""
    _refuse_keyless(case)
    given, amounts, runtime = allocation_of(case), amounts_of(case), runtime_class_of(case)
    storage, security = storage_of(case), security_of(case)
    release = release_of(case.service.name)
    plan = ClusterPlan(
        release=release,
        namespace=case.ask.namespace,
        context=case.ask.context,
        image=with_registry(case.reference),
        user=security.user,
        unconfined=security.unconfined,
        devices=given.devices,
        runtime_class=runtime.name,
        cpu=str(amounts.cpu),
        memory=amounts.memory,
        ephemeral_request=amounts.ephemeral_request,
        ephemeral_limit=amounts.ephemeral_limit,
        shm=amounts.shm,
        startup_budget_s=amounts.startup_budget_s,
        fetch_budget_s=amounts.fetch_budget_s,
        prestop_s=PRESTOP_S,
        drain_s=amounts.drain_s,
        weights_claim=storage.claim,
        weights_sub_path=storage.sub_path,
        weights_size=amounts.weights_size,
        storage_class=case.ask.storage_class,
        cache_sub_path=storage.cache_sub_path,
        cache_arch=storage.cache_arch,
        replicas=storage.replicas,
        ask=case.ask,
        exceptions=security.exceptions,
        reasons={
            "image": case.image_reason,
            **remarks_of(case),
            "runtimeClassName": runtime.reason,
            "podSecurityContext": security.reason,
            **given.reasons,
            **amounts.reasons,
            **storage.reasons,
        },
    )
    return plan, tuple(_decisions(case, plan, given, amounts, runtime, storage, security))


def _refuse_keyless(case: Case) -> None:
    if not case.ask.host or engine(case.build.engine).KEY_VARIABLE:
        return
    name = shown(case.build.engine)
    raise InputError(
        f"{name} is not published under {case.ask.host}: it would answer everybody",
        why=f"{name} prints its keys into its log, so it gets none; what publishes it has to check keys itself.",
        fix=("use vLLM, which keeps a key:\n" + command_line("up", case.service, change={"engine": "vllm"}),
             "or take `host` out, and put a gateway in front"),
        id="PL099",
    )  # fmt: skip


def _decisions(
    case: Case, plan: ClusterPlan, given: Allocation, amounts: Amounts, runtime: RuntimeClass, storage: Storage,
    security: Security,
) -> Iterator[Decision]:  # fmt: skip
    by_claim = plan.devices.mode == "dra"
    if case.devices.cards:
        yield _said(
            "devices enter by", given.value, given.reason, _CLAIMS if by_claim else _PLUGINS, evidence=given.evidence
        )
        labels = ", ".join(f"{one.key} {one.operator} {' '.join(one.values)}" for one in plan.devices.labels)
        yield _said("node labels", labels or "none", given.reasons.get("accelerator.nodeLabels", "a claim chooses"), "")
        seen = Evidence.SEEN_HERE if case.facts is not None else Evidence.ASSUMED
        yield _said("runtime class", runtime.name or "none", runtime.reason, _CLASSES, evidence=seen)
    yield _said("release", plan.release, _name_words(case, plan), "")
    yield _said("pod memory", format_bytes(plan.memory), amounts.reasons["resources"], "")
    yield _said("shared memory", format_bytes(plan.shm), amounts.reasons["shm.size"], "")
    yield _said("loading time", f"{plan.startup_budget_s} s", amounts.reasons["probes.startupBudgetSeconds"], _PROBES)
    yield _said("fetching time", f"{plan.fetch_budget_s} s", amounts.reasons["fetch.budgetSeconds"], "")
    yield _said("stop time", f"{plan.prestop_s + plan.drain_s} s", amounts.reasons["drain"], "")
    yield _said("weights", plan.weights_claim or format_bytes(plan.weights_size), storage.reasons["weights"], "")
    yield _said("caches", plan.cache_sub_path, storage.reasons["cache"], "")
    yield _said(
        "replicas", str(plan.replicas),
        "an update takes the old pod away first, because no card is spare: the model is away while the new one loads",
        _ROLLOUT,
    )  # fmt: skip
    yield _said("user", security.user or "root", security.reason, "")
    yield _said(
        "pod security", "; ".join(plan.exceptions) or "restricted",
        "a namespace that enforces `restricted` refuses the pod" if plan.exceptions else "every namespace takes it",
        STANDARD,
    )  # fmt: skip


def _name_words(case: Case, plan: ClusterPlan) -> str:
    if plan.release == case.service.name:
        return "the service's name"
    return f"`{case.service.name}`, as a Service of a cluster may be called"


def _said(field: str, value: str, reason: str, source: str, *, evidence: Evidence = Evidence.READ_IN_CODE) -> Decision:
    return Decision(field=field, value=value, reason=reason, source=source or "selfhost", evidence=evidence)


def device_of(plan: ClusterPlan, devices: Devices) -> str:
    """Not a card's own number: the scheduler takes any that fits."""
    if not devices.cards:
        return devices.device
    claim = plan.devices.claim
    return claim.device_class if claim is not None else plan.devices.resource
