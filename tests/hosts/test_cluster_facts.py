"""What is read from a cluster's objects: cards by their labels, what is free of them, and where a pod could start."""

from decimal import Decimal

import pytest

from selfhost.core.errors import EnvironmentMissing
from selfhost.hosts.cluster_choice import Wish, startable
from selfhost.hosts.cluster_facts import facts_of
from selfhost.hosts.cluster_host import host_on
from selfhost.hosts.cluster_quantity import quantity
from selfhost.hosts.cluster_requests import of_pod
from selfhost.shapes.host import Known, Unknown
from selfhost.shapes.workload import Toleration
from tests.fakes.cluster import (
    A100_80,
    GPU_TAINT,
    H100,
    L4,
    MI300X,
    claim,
    device_class,
    l4_slice,
    node,
    pod,
)  # fmt: skip

MIB = 1024**2


@pytest.mark.parametrize(
    ("text", "value"),
    [("1", 1), ("500m", "0.5"), ("16Gi", 16 * 1024**3), ("1e3", 1000), ("1E3", 1000), ("2k", 2000), (".5", "0.5"),
     ("-1", -1), ("1.5Gi", 1610612736), ("1E", 10**18), (4, 4)],
)  # fmt: skip
def test_quantities_are_read_as_the_api_reads_them(text, value):
    assert quantity(text) == Decimal(value)


@pytest.mark.parametrize("text", ["16GiB", "Gi", "", None, "1 Gi", "0x10", "1ee3"])
def test_what_is_no_quantity_is_none(text):
    assert quantity(text) is None


def test_a_pod_holds_what_its_containers_or_its_largest_init_container_need():
    limits = [{"cpu": "1", "nvidia.com/gpu": "1"}, {"cpu": "500m"}]
    spec = {
        "containers": [{"resources": {"limits": one}} for one in limits],
        "initContainers": [
            {"resources": {"requests": {"cpu": "4"}}},
            {"restartPolicy": "Always", "resources": {"requests": {"cpu": "250m"}}},
        ],
        "overhead": {"cpu": "100m"},
    }
    # 1 + 0.5 + 0.25 of the sidecar = 1.75 < 4 of the init container; overhead on top
    assert of_pod({"spec": spec}) == {"cpu": Decimal("4.1"), "nvidia.com/gpu": Decimal(1)}


def test_nodes_with_the_same_card_are_one_group_and_pods_that_run_are_subtracted():
    facts = facts_of([
        node("a", {"nvidia.com/gpu": "1"}, L4), node("b", {"nvidia.com/gpu": "4"}, L4), node("c"),
        pod("one", "b", {"nvidia.com/gpu": "3"}), pod("done", "a", {"nvidia.com/gpu": "1"}, phase="Succeeded"),
    ])  # fmt: skip
    (group,) = facts.groups
    assert (group.kind.name, group.kind.arch, group.kind.memory_mib) == ("NVIDIA L4", "sm_89", 23034)
    assert [node.name for node in group.nodes] == ["a", "b"]
    assert (group.total, group.total_free) == (5, 2)
    assert group.best.name == "b"


def test_the_oldest_driver_of_a_group_counts():
    older = {**L4, "nvidia.com/cuda.driver-version.full": "550.120"}
    facts = facts_of([node("a", {"nvidia.com/gpu": "1"}, L4), node("b", {"nvidia.com/gpu": "1"}, older)])
    assert [group.kind.driver for group in facts.groups] == ["550.120"]
    assert host_on(facts, facts.groups[0]).driver == Known("550.120", "labels of the node")


@pytest.mark.parametrize(
    ("offers", "labels", "name", "arch", "memory"),
    [
        ({"nvidia.com/gpu": "2"}, {"cloud.google.com/gke-accelerator": "nvidia-l4"}, "L4", "sm_89", None),
        ({"nvidia.com/gpu": "1"}, {"karpenter.k8s.aws/instance-gpu-name": "a10g"}, "A10 / A10G", "sm_86", None),
        ({"amd.com/gpu": "8"}, MI300X, "AMD Instinct MI300X OAM", "gfx942", None),
        ({"gpu.intel.com/xe": "1"}, {"gpu.intel.com/device-id.0300-e20b.present": "true"}, None, "bmg", None),
        ({"nvidia.com/mig-3g.40gb": "2"}, {**H100, "nvidia.com/mig-3g.40gb.memory": "40320"},
         "NVIDIA H100 80GB HBM3", "sm_90", 40320),
        ({"nvidia.com/gpu": "7"}, {**H100, "nvidia.com/gpu.product": "NVIDIA-H100-80GB-HBM3-MIG-1g.10gb",
                                   "nvidia.com/gpu.memory": "9984"}, "NVIDIA H100 80GB HBM3", "sm_90", 9984),
        ({"nvidia.com/gpu": "1"}, {}, "", "", 0),
    ],
)  # fmt: skip
def test_cards_are_known_by_what_labellers_and_clouds_say(offers, labels, name, arch, memory):
    (group,) = facts_of([node("a", offers, labels)]).groups
    assert group.kind.arch == arch
    assert name is None or group.kind.name == name
    assert memory is None or group.kind.memory_mib == memory


def test_a_host_of_a_group_has_the_free_cards_of_its_best_node():
    facts = facts_of([node("a", {"nvidia.com/gpu": "8"}, H100), pod("p", "a", {"nvidia.com/gpu": "5", "cpu": "8"})])
    host = host_on(facts, facts.groups[0])
    assert len(host.accelerators) == 3
    assert {card.memory_total.value for card in host.accelerators} == {81559 * MIB}
    assert host.cpu.cores == Known(24.0, "allocatable, less what pods ask for")
    assert len(host.usable_accelerators) == 3


@pytest.mark.parametrize(
    "labels",
    [{**H100, "nvidia.com/gpu.product": "NVIDIA-H100-80GB-HBM3-MIG-1g.10gb"}, {**L4, "nvidia.com/gpu.replicas": "4"}],
)
def test_slices_and_shares_are_taken_one_by_one(labels):
    facts = facts_of([node("a", {"nvidia.com/gpu": "4"}, labels)])
    assert len(host_on(facts, facts.groups[0]).accelerators) == 1


def test_of_cards_that_no_label_describes_one_is_taken_and_its_size_is_unknown():
    facts = facts_of([node("a", {"nvidia.com/gpu": "4"})])
    (card,) = host_on(facts, facts.groups[0]).accelerators
    assert isinstance(card.memory_total, Unknown)


def test_mps_divides_the_memory_and_time_slicing_does_not():
    for strategy, size in (("mps", 23034 * MIB // 4), ("time-slicing", 23034 * MIB)):
        labels = {**L4, "nvidia.com/gpu.replicas": "4", "nvidia.com/gpu.sharing-strategy": strategy}
        facts = facts_of([node("a", {"nvidia.com/gpu": "4"}, labels)])
        assert host_on(facts, facts.groups[0]).accelerators[0].memory_total.value == size


def test_devices_of_slices_are_cards_where_a_class_hands_them_out():
    objects = [node("d"), l4_slice("d", "gpu-0", "gpu-1"), claim("c", "gpu-1", pool="d")]
    assert facts_of(objects).groups == ()
    (group,) = facts_of([*objects, device_class("gpu.nvidia.com")]).groups
    assert group.by_claim
    assert (group.kind.name, group.kind.arch, group.kind.memory_mib) == ("NVIDIA L4", "sm_89", 23034)
    assert (group.total, group.total_free) == (2, 1)


def test_what_a_device_plugin_offers_goes_before_claims():
    objects = [node("d", {"nvidia.com/gpu": "2"}, L4), l4_slice("d", "gpu-0"), device_class("gpu.nvidia.com")]
    assert [group.by_claim for group in facts_of(objects).groups] == [False]


def test_the_smallest_cards_come_first_and_held_ones_not_at_all():
    facts = facts_of([
        node("big", {"nvidia.com/gpu": "8"}, H100, GPU_TAINT), node("small", {"nvidia.com/gpu": "1"}, L4, GPU_TAINT),
        node("old", {"nvidia.com/gpu": "1"}, A100_80), pod("p", "old", {"nvidia.com/gpu": "1"}),
    ])  # fmt: skip
    assert [group.best.name for group in startable(facts, Wish())] == ["small", "big"]
    assert [group.best.name for group in startable(facts, Wish(only="H100"))] == ["big"]


DEDICATED = {"key": "dedicated", "value": "ml", "effect": "NoSchedule"}
ONE = {"nvidia.com/gpu": "1"}


@pytest.mark.parametrize(
    ("objects", "id", "said"),
    [
        ([], "PL094", "no node of the cluster was seen"),
        ([node("a"), node("b")], "PL095", "none of the 2 nodes offers a card"),
        ([node("a", {}, L4)], "PL095", "the one node offers no card"),
        ([node("a", {"nvidia.com/gpu": "0"}, L4)], "PL095", "the one node offers no card"),
        ([node("a", ONE, L4), pod("p", "a", ONE)], "PL096", "the only card of the cluster is held"),
        ([node("a", {"nvidia.com/gpu": "2"}, L4), pod("p", "a", {"nvidia.com/gpu": "2"})], "PL096",
         "all 2 cards of the cluster are held"),
        ([node("a", ONE, L4, DEDICATED)], "PL097", "no node with NVIDIA L4 takes the pod"),
        ([node("a", ONE, L4, ready="False")], "PL097", "no node with NVIDIA L4 takes the pod"),
        ([node("a", ONE, L4, cordoned=True)], "PL097", "no node with NVIDIA L4 takes the pod"),
    ],
)  # fmt: skip
def test_where_no_node_takes_the_pod_it_is_said_why(objects, id, said):
    with pytest.raises(EnvironmentMissing) as refused:
        startable(facts_of(objects), Wish())
    assert (refused.value.id, refused.value.what) == (id, said)
    assert refused.value.fix


def test_who_holds_the_cards_and_what_keeps_a_node_is_named():
    held = facts_of([node("a", ONE, L4), pod("llm", "a", ONE)])
    with pytest.raises(EnvironmentMissing) as refused:
        startable(held, Wish())
    assert refused.value.evidence == "team/llm holds 1 nvidia.com/gpu on a"
    kept = facts_of([node("a", ONE, L4, DEDICATED)])
    with pytest.raises(EnvironmentMissing) as refused:
        startable(kept, Wish())
    assert refused.value.evidence == "a: taint dedicated:NoSchedule"
    silent = facts_of([node("a", {}, L4)])
    with pytest.raises(EnvironmentMissing) as refused:
        startable(silent, Wish())
    assert refused.value.evidence == "a: label nvidia.com/gpu.product=NVIDIA-L4"


def test_a_toleration_of_ones_own_opens_a_node_and_a_selector_closes_one():
    facts = facts_of([node("a", ONE, L4, DEDICATED), node("b", ONE, {**L4, "pool": "x"})])
    wish = Wish(tolerations=(Toleration(key="dedicated", operator="Exists"),))
    assert [one.name for group in startable(facts, wish) for one in group.nodes] == ["a", "b"]
    assert [one.name for group in startable(facts, Wish(node_selector={"pool": "x"})) for one in group.nodes] == ["b"]


def test_lists_of_objects_are_opened():
    listed = {"kind": "NodeList", "items": [{k: v for k, v in node("a", ONE, L4).items() if k != "kind"}]}
    assert len(facts_of([listed]).groups) == 1
