"""What stands around the engine's pod: network, publishing, scaling, objects of the user's own."""

import ipaddress

import pytest

from tests.render.chart import merged, one, rendered
from tests.render.chart_values import EVERYTHING, MANY, SETS


def test_the_network_lets_in_who_asks_and_out_who_fetches():
    found = rendered(EVERYTHING)
    policy = one(found, "NetworkPolicy", "model")["spec"]
    (rule,) = policy["ingress"]
    assert rule["ports"] == [{"protocol": "TCP", "port": 8000}]
    own = {"networkPolicy": {"from": [{"podSelector": {"matchLabels": {"app": "chat"}}}]}}
    test = one(found, "Pod")["metadata"]["labels"]
    (narrow,) = one(rendered(merged(EVERYTHING, own)), "NetworkPolicy", "model")["spec"]["ingress"]
    allowed = [each["podSelector"]["matchLabels"] for each in narrow["from"] if each.get("podSelector")]
    assert {"podSelector": {}} in rule["from"]  # which the test's pod is one of
    assert len(rule["from"]) == 3
    assert any(labels.items() <= test.items() for labels in allowed)
    assert {"namespaceSelector": {"matchLabels": {"kubernetes.io/metadata.name": "monitoring"}}} in rule["from"]
    fetch = one(found, "NetworkPolicy", "fetch")["spec"]
    assert fetch["ingress"] == []
    assert [port["port"] for port in fetch["egress"][1]["ports"]] == [80, 443, 3128, 8081]
    assert one(rendered(), "NetworkPolicy", "model")["spec"]["egress"] == []


@pytest.mark.parametrize("kind", ["Ingress", "HTTPRoute"])
def test_only_v1_and_health_are_published(kind):
    (rule,) = one(rendered(EVERYTHING), kind)["spec"]["rules"]
    if kind == "Ingress":
        seen = {path["path"]: path["pathType"] for path in rule["http"]["paths"]}
        assert seen == {"/v1": "Prefix", "/health": "Exact"}
        return
    seen = {match["path"]["value"]: match["path"]["type"] for match in rule["matches"]}
    assert seen == {"/v1": "PathPrefix", "/health": "Exact"}
    assert rule["timeouts"] == {"request": "3600s", "backendRequest": "3600s"}


def test_nginx_neither_buffers_nor_gives_up():
    item = one(rendered(EVERYTHING), "Ingress")
    notes = {key.rpartition("/")[2]: value for key, value in item["metadata"]["annotations"].items()}
    assert notes["proxy-buffering"] == "off"
    assert int(notes["proxy-read-timeout"]) >= 3600
    assert notes["proxy-body-size"] == "8m"
    assert item["spec"]["tls"] == [{"hosts": ["qwen.example.org"], "secretName": "qwen-tls"}]


@pytest.mark.parametrize(
    ("values", "metric"),
    [("everything", "vllm:num_requests_waiting"), ("everything-sglang", "sglang:num_queue_reqs")],
)
def test_keda_asks_for_the_series_that_the_engine_has(values, metric):
    (trigger,) = one(rendered(SETS[values]), "ScaledObject")["spec"]["triggers"]
    assert trigger["metadata"]["query"] == f'sum({metric}{{model_name="qwen3-4b",namespace="team"}})'


@pytest.mark.parametrize(
    ("values", "replicas"),
    [({}, 1), (MANY, 3), ({"replicaCount": 0}, 0), ({"replicaCount": None}, None), (EVERYTHING, None)],
)
def test_replicas_are_left_to_whoever_owns_them(values, replicas):
    assert one(rendered(values), "Deployment")["spec"].get("replicas") == replicas


@pytest.mark.parametrize(
    ("values", "budgets"),
    [({}, 0), (MANY, 1), (SETS["everything"], 1), (SETS["hpa"], 0), ({"podDisruptionBudget": {"enabled": True}}, 1)],
)
def test_a_disruption_budget_is_for_two_or_more(values, budgets):
    found = [item["spec"]["maxUnavailable"] for item in rendered(values) if item["kind"] == "PodDisruptionBudget"]
    assert found == [1] * budgets


def test_replicas_spread_over_nodes():
    (spread,) = one(rendered(MANY), "Deployment")["spec"]["template"]["spec"]["topologySpreadConstraints"]
    assert (spread["maxSkew"], spread["whenUnsatisfiable"]) == (1, "ScheduleAnyway")
    assert "topologySpreadConstraints" not in one(rendered(), "Deployment")["spec"]["template"]["spec"]


def test_an_object_in_text_is_a_template():
    names = [item["metadata"]["name"] for item in rendered(EVERYTHING) if item["kind"] == "ConfigMap"]
    assert names == ["notes", "qwen3-4b-more"]


def test_addresses_that_hand_out_a_clouds_credentials_are_left_out():
    egress = one(rendered(), "NetworkPolicy", "fetch")["spec"]["egress"]
    blocks = {each["ipBlock"]["cidr"]: each["ipBlock"]["except"] for each in egress[1]["to"] if "ipBlock" in each}
    v4 = [ipaddress.ip_network(cidr) for cidr in blocks["0.0.0.0/0"]]
    v6 = [ipaddress.ip_network(cidr) for cidr in blocks["::/0"]]
    for address in ("169.254.169.254", "169.254.170.2", "169.254.170.23", "168.63.129.16", "100.100.100.200"):
        assert any(ipaddress.ip_address(address) in net for net in v4), address
    for address in ("fd00:ec2::254", "fd00:ec2::23"):
        assert any(ipaddress.ip_address(address) in net for net in v6), address
    assert "to" not in egress[0]  # names, wherever the node's own resolver is


@pytest.mark.parametrize(
    ("env", "ports"),
    [
        ({"HTTPS_PROXY": "proxy.corp:3128"}, [80, 443, 3128]),
        ({"https_proxy": "http://user@proxy.corp:8080/"}, [80, 443, 8080]),
        ({"ALL_PROXY": "socks5://proxy.corp:1080"}, [80, 443, 1080]),
        ({"NO_PROXY": "hub.corp:9000"}, [80, 443]),
        ({"WHEN": "12:30"}, [80, 443]),
    ],
)
def test_the_port_of_a_proxy_is_open_with_a_scheme_and_without(env, ports):
    found = one(rendered({"fetch": {"env": env}}), "NetworkPolicy", "fetch")["spec"]["egress"]
    assert [port["port"] for port in found[1]["ports"]] == ports


def test_a_queue_is_asked_for_by_the_engine_and_by_the_job():
    found = rendered({"queue": "models"})
    for kind in ("Deployment", "Job"):
        assert one(found, kind)["metadata"]["labels"]["kueue.x-k8s.io/queue-name"] == "models"
    assert "kueue.x-k8s.io/queue-name" not in one(rendered(), "Job")["metadata"]["labels"]


def test_another_type_of_service_is_a_risk_that_somebody_took():
    found = rendered({"service": {"type": "LoadBalancer", "acceptKeylessPaths": True}})
    assert one(found, "Service")["spec"]["type"] == "LoadBalancer"
