"""Why no node takes a pod: what is computed from nodes and pods, with the scheduler's own words beside it.

The texts are those of kube-scheduler 1.30 to 1.36.
"""

import pytest

from selfhost.doctor.areas.kubernetes import cluster_area
from selfhost.doctor.cluster.state import Cluster
from tests.doctor.cluster_objects import container, deployment, event, node, pod, replica_set, running, unschedulable
from tests.doctor.cluster_verdict import area, causes, first, text

GPU = {"nvidia.com/gpu": "1"}
TAINT = [{"key": "nvidia.com/gpu", "value": "present", "effect": "NoSchedule"}]
PREEMPTION = (
    " no new claims to deallocate, preemption: 0/2 nodes are available: 2 Preemption is not helpful for scheduling."
)


def wanting(limits=GPU, said="0/1 nodes are available: 1 Insufficient nvidia.com/gpu.", name="qwen-0", **spec):
    return pod(name, containers=[container(limits=limits)], status=unschedulable(said), **spec)


def term(key, operator, *values):
    wish = {"key": key, "operator": operator, **({"values": list(values)} if values else {})}
    terms = {"nodeSelectorTerms": [{"matchExpressions": [wish]}]}
    return {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": terms}}


@pytest.mark.parametrize(
    "said",
    [
        "0/2 nodes are available: 1 Insufficient nvidia.com/gpu, 1 node(s) had untolerated taint(s)." + PREEMPTION,
        (
            "0/2 nodes are available: 1 Insufficient nvidia.com/gpu, 1 node(s) had untolerated taint "
            "{nvidia.com/gpu: present}."
        ),
        (
            "0/2 nodes are available: 1 Insufficient nvidia.com/gpu, 1 node(s) had taint {nvidia.com/gpu: present}, "
            "that the pod didn't tolerate."
        ),
    ],
)
def test_a_taint_hides_behind_insufficient(said):
    objects = node("gpu-1", cards=GPU, taints=TAINT), node("cpu-1"), wanting(said=said)
    found = first(*objects)
    assert causes(*objects) == ["KX005"]
    assert "nvidia.com/gpu=present:NoSchedule of node gpu-1" in found.title
    assert "counts the nodes without cards" in found.why


def test_a_toleration_of_another_value_does_not_help():
    tolerated = [{"key": "nvidia.com/gpu", "operator": "Equal", "value": "true", "effect": "NoSchedule"}]
    found = first(node("gpu-1", cards=GPU, taints=TAINT), wanting(tolerations=tolerated))
    assert (found.id, "it tolerates nvidia.com/gpu=true only" in found.evidence) == ("KX005", True)


def test_a_patch_keeps_the_tolerations_that_are_there():
    tolerated = [{"key": "team", "operator": "Exists"}]
    objects = (
        node("gpu-1", cards=GPU, taints=TAINT),
        deployment("x"),
        replica_set("x-7d9c8b5f4", "x"),
        wanting(name="x-7d9c8b5f4-abcde", owner=("ReplicaSet", "x-7d9c8b5f4"), tolerations=tolerated),
    )
    assert '"tolerations":[{"key":"team","operator":"Exists"},{"key":"nvidia.com/gpu"' in first(*objects).fix[0]


@pytest.mark.parametrize("resource", ["nvidia.com/gpu", "amd.com/gpu", "gpu.intel.com/xe", "habana.ai/gaudi"])
def test_no_node_advertises_it(resource):
    found = first(
        node("a"), node("b"), wanting({resource: "1"}, f"0/2 nodes are available: 2 Insufficient {resource}.")
    )
    assert found.id == "KX001"
    assert f"asks for 1 {resource}, and no node advertises it" in found.title


@pytest.mark.parametrize(
    ("asked", "offered", "hint"),
    [
        ("nvidia.com/gpu", {"nvidia.com/gpu": "0", "nvidia.com/mig-3g.40gb": "2"}, "MIG"),
        ("nvidia.com/gpu", {"nvidia.com/gpu.shared": "4"}, "shares"),
        ("amd.com/gpu", {"amd.com/cpx_nps4": "8"}, "partitions"),
        ("gpu.intel.com/i915", {"gpu.intel.com/xe": "1"}, "kernel driver"),
    ],
)
def test_the_cards_go_by_another_name(asked, offered, hint):
    found = first(
        node("gpu-1", cards=offered), wanting({asked: "1"}, f"0/1 nodes are available: 1 Insufficient {asked}.")
    )
    other = next(name for name in offered if name != asked)
    assert (found.id, other in found.title, hint in found.why) == ("KX004", True, True)


def test_monitoring_resources_are_no_cards():
    found = first(node("a", cards={"gpu.intel.com/xe_monitoring": "1"}), wanting({"gpu.intel.com/xe": "1"}))
    assert found.id == "KX001"


def test_all_are_held_by_whom():
    held = running(pod("other-0", "lab", node="gpu-1", containers=[container(limits={"nvidia.com/gpu": "2"})]))
    found = first(node("gpu-1", cards={"nvidia.com/gpu": "2"}), held, wanting())
    assert (found.id, found.title) == (
        "KX002",
        "pod team/qwen-0 waits for 1 nvidia.com/gpu: held by lab/other-0",
    )
    assert "gpu-1: 0 of 2 free; lab/other-0 holds 2" in found.evidence


def test_a_pod_that_has_ended_holds_nothing():
    done = pod("job-1", node="gpu-1", phase="Succeeded", containers=[container(limits=GPU)])
    assert causes(node("gpu-1", cards=GPU), done, wanting()) == []


def test_the_node_with_the_most_free_comes_closest():
    nodes = node("a", cards={"nvidia.com/gpu": "4"}), node("b", cards={"nvidia.com/gpu": "4"})
    users = [
        running(pod(f"p{index}", node=where, containers=[container(limits={"nvidia.com/gpu": count})]))
        for index, (where, count) in enumerate((("a", "4"), ("b", "1")))
    ]
    found = first(*nodes, *users, wanting({"nvidia.com/gpu": "4"}))
    assert "b comes closest, with 3 of 4 free" in found.why


def test_a_pod_that_is_going_still_holds_its_cards():
    going = running(pod("old-0", node="gpu-1", deleted="2026-12-02T09:00:00Z", containers=[container(limits=GPU)]))
    objects = node("gpu-1", cards=GPU), going, wanting()
    assert causes(*objects) == ["KX020"]
    assert (
        "pod team/old-0 is being deleted and still holds 1 nvidia.com/gpu, and pod team/qwen-0 waits"
        in first(*objects).title
    )


def test_more_than_one_node_has():
    found = first(
        node("a", cards={"nvidia.com/gpu": "4"}),
        node("b", cards={"nvidia.com/gpu": "2"}),
        wanting({"nvidia.com/gpu": "8"}),
    )
    assert found.id == "KX003"
    assert "asks for 8 nvidia.com/gpu; the most that one node has is 4" in found.title


def test_a_selector_shows_what_is_wanted_and_what_is_there():
    labels = {"nvidia.com/gpu.product": "NVIDIA-L4-SHARED"}
    found = first(
        node("gpu-1", cards=GPU, labels=labels), wanting(nodeSelector={"nvidia.com/gpu.product": "NVIDIA-L4"})
    )
    assert found.id == "KX006"
    assert "wants nvidia.com/gpu.product=NVIDIA-L4, and node gpu-1 has NVIDIA-L4-SHARED" in found.title
    assert "-SHARED" in found.why


def test_a_label_that_nobody_has_points_at_its_labeller():
    found = first(node("gpu-1", cards=GPU), wanting(affinity=term("nvidia.com/gpu.clique", "Exists")))
    assert (found.id, "GPU feature discovery" in found.why) == ("KX006", True)


@pytest.mark.parametrize(("value", "plain"), [("16Gi", "16384"), ("15000M", "15000"), ("1Ti", "1048576")])
def test_a_comparison_with_no_integer_never_matches(value, plain):
    labels = {"nvidia.com/gpu.memory": "23034"}
    found = first(node("gpu-1", cards=GPU, labels=labels), wanting(affinity=term("nvidia.com/gpu.memory", "Gt", value)))
    assert (found.id, f'values: ["{plain}"]' in found.fix[0]) == ("KX007", True)


@pytest.mark.parametrize(("memory", "expected"), [("15000", ["KX014"]), ("23034", ["KX006"])])
def test_greater_is_strictly_greater(memory, expected):
    labels = {"nvidia.com/gpu.memory": "23034"}
    objects = node("gpu-1", cards=GPU, labels=labels), wanting(affinity=term("nvidia.com/gpu.memory", "Gt", memory))
    assert causes(*objects) == expected


def test_terms_are_alternatives():
    either = term("zone", "In", "a")
    either["nodeAffinity"]["requiredDuringSchedulingIgnoredDuringExecution"]["nodeSelectorTerms"].append(
        {"matchExpressions": [{"key": "zone", "operator": "In", "values": ["b"]}]}
    )
    assert causes(node("gpu-1", cards=GPU, labels={"zone": "b"}), wanting(affinity=either)) == ["KX014"]


def test_memory_that_no_node_can_give_is_told_from_capacity():
    tight = node("gpu-1", cards=GPU, memory="65746252Ki", allocatable={"memory": "62914560Ki"})
    found = first(tight, wanting({**GPU, "memory": "64Gi"}, "0/1 nodes are available: 1 Insufficient memory."))
    assert found.id == "KX008"
    assert (
        "asks for 64Gi memory; gpu-1 has 60Gi allocatable (capacity 62.7Gi) although its cards are free" in found.title
    )


def test_cpu_that_others_asked_for():
    user = running(pod("web-0", node="gpu-1", containers=[container(requests={"cpu": "30"})]))
    found = first(
        node("gpu-1", cards=GPU), user, wanting({**GPU, "cpu": "4"}, "0/1 nodes are available: 1 Insufficient cpu.")
    )
    assert (found.id, "gpu-1 has 2 free" in found.title) == ("KX008", True)


def test_a_cordoned_node_and_one_that_is_not_ready():
    assert causes(
        node(
            "gpu-1",
            cards=GPU,
            unschedulable=True,
            taints=[{"key": "node.kubernetes.io/unschedulable", "effect": "NoSchedule"}],
        ),
        wanting(),
    ) == ["KX010"]
    away = node(
        "gpu-1",
        cards=GPU,
        conditions={"Ready": "Unknown"},
        taints=[{"key": "node.kubernetes.io/unreachable", "effect": "NoExecute"}],
    )
    assert "KX010" in causes(away, wanting())


GATED = {
    "conditions": [
        {
            "type": "PodScheduled",
            "status": "False",
            "reason": "SchedulingGated",
            "message": "Scheduling is blocked due to non-empty scheduling gates",
        }
    ]
}


@pytest.mark.parametrize(
    ("gate", "labels", "words"),
    [
        ("kueue.x-k8s.io/admission", {}, "Only a pod with a queue's name is ever admitted"),
        ("kueue.x-k8s.io/admission", {"kueue.x-k8s.io/queue-name": "gpu"}, "The queue gpu has not admitted it yet"),
        ("example.com/wait", {}, "no event says so"),
    ],
)
def test_a_gate_has_no_event(gate, labels, words):
    held = pod("qwen-0", labels=labels, schedulingGates=[{"name": gate}], status=GATED)
    found = first(node("gpu-1", cards=GPU), held)
    assert (found.id, words in found.why) == ("KX009", True)


def test_a_scheduler_that_nobody_is():
    found = first(
        node("gpu-1", cards=GPU), pod("qwen-0", schedulerName="hami-scheduler", containers=[container(limits=GPU)])
    )
    assert (found.id, "hami-scheduler" in found.title) == ("KX017", True)


def test_without_condition_and_event_nothing_is_guessed():
    found = area(node("gpu-1", cards=GPU), pod("qwen-0", containers=[container(limits=GPU)]))
    assert found.findings == ()
    assert "events are kept for an hour" in found.unknowns[0]


def test_without_nodes_the_schedulers_words_are_explained_and_the_rest_is_unknown():
    found = first(
        wanting(said="0/2 nodes are available: 1 Insufficient nvidia.com/gpu, 1 node(s) had untolerated taint(s).")
    )
    assert found.id == "KX014"
    assert "which of them comes closest is unknown" in found.why
    assert "`Insufficient` counts the others" in found.why


def test_objects_that_say_another_thing_than_the_scheduler_are_unknown():
    found = area(
        node("gpu-1", cards=GPU), running(pod("web", node="gpu-1", containers=[container(image="nginx")])), wanting()
    )
    assert (found.findings, found.settled) == ((), False)
    assert "by these objects node gpu-1 fits" in found.unknowns[0]


def test_pods_that_may_not_be_read_leave_it_open_who_holds_the_cards():
    state = Cluster((node("gpu-1", cards=GPU), wanting()), unread={"Pod": "only those of team may be read"})
    found = cluster_area(state)
    assert found.findings == ()
    assert "who holds it is unknown (only those of team may be read)" in found.unknowns[0]


def test_anti_affinity_is_named():
    said = "0/1 nodes are available: 1 node(s) didn't match pod anti-affinity rules."
    assert causes(node("gpu-1", cards=GPU), wanting(said=said)) == ["KX015"]


def test_several_pods_of_one_deployment_are_said_once():
    pods = [
        wanting(name=f"x-7d9c8b5f4-{tail}", owner=("ReplicaSet", "x-7d9c8b5f4")) for tail in ("aaaaa", "bbbbb", "ccccc")
    ]
    found = area(node("a"), deployment("x"), replica_set("x-7d9c8b5f4", "x"), *pods).findings
    assert [one.id for one in found] == ["KX001"]
    assert found[0].title.endswith("(and 2 more of it)")


def test_an_autoscaler_that_brings_nothing_follows_from_what_keeps_the_pod_off():
    event_ = event("Pod", "qwen-0", "NotTriggerScaleUp", "pod didn't trigger scale-up: 1 Insufficient nvidia.com/gpu")
    found = {one.id: one for one in area(node("a"), wanting(), event_).findings}
    assert found["KX001"].severity.value == "error"
    assert found["KX011"].severity.value == "info"
    assert found["KX011"].why.startswith("Follows from KX001")


def test_an_extended_resource_that_a_device_class_serves_is_not_absent():
    bridge = {
        "apiVersion": "resource.k8s.io/v1",
        "kind": "DeviceClass",
        "metadata": {"name": "gpu.nvidia.com"},
        "spec": {"extendedResourceName": "nvidia.com/gpu"},
    }
    assert "KX001" not in causes(node("a"), bridge, wanting())


def test_the_whole_verdict_names_the_command_with_its_namespace():
    held = running(pod("other-0", "lab", node="gpu-1", containers=[container(limits=GPU)]))
    assert "kubectl -n lab delete pod other-0" in text(first(node("gpu-1", cards=GPU), held, wanting()))
