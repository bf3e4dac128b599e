"""No value that may change changes a field that Kubernetes never lets change."""

import pytest

from tests.render.chart import CHART, helm, immutable_fields, merged, one, rendered
from tests.render.chart_values import AMD, CPU, DRA, EVERYTHING, SETS, TWO

CHANGES = {
    "everything": {
        **EVERYTHING,
        "nameOverride": "",
        "weights": {"size": "40Gi"},
        "rollout": {"surge": 0, "revisionHistoryLimit": 5, "progressDeadlineSeconds": 7200},
        "autoscaling": {"enabled": False},
    },
    "another revision": {"model": {"revision": "b" * 40}, "weights": {"subPath": "models/qwen--qwen3-4b/b"}},
    "another image": {"image": {"tag": "v0.34.0"}, "engine": {"version": "0.34.0"}},
    "two cards": TWO,
    "claims": DRA,
    "other claims": merged(DRA, TWO),
    "another vendor": AMD,
    "the processor": CPU,
    "another mode": {"reasoning": {"mode": "off"}, "precision": {"kv": "fp8"}},
    "labels": {"commonLabels": {"a": "b"}, "podLabels": {"c": "d"}, "selfhost": {"digest": "other"}},
    "fetching": {"fetch": {"resources": {"limits": {"memory": "8Gi"}}, "budgetSeconds": 60, "include": ["*"]}},
    "tolerations": {"tolerations": [{"operator": "Exists"}], "priorityClassName": "high"},
    "nothing fetched": {"fetch": {"enabled": False}},
}


@pytest.mark.parametrize("name", CHANGES)
def test_an_upgrade_changes_no_immutable_field(name):
    before, after = immutable_fields(rendered()), immutable_fields(rendered(CHANGES[name]))
    both = before.keys() & after.keys()
    assert {
        ("Deployment", "qwen3-4b-selfhost-model"),
        ("PersistentVolumeClaim", "qwen3-4b-selfhost-model-weights"),
    } <= both
    for key in both:
        assert before[key] == after[key], key


def test_a_new_version_of_the_chart_changes_none_either(tmp_path):
    done = helm("package", CHART, "--version", "9.9.9", "--app-version", "9.9.9", "--destination", tmp_path)
    assert done.returncode == 0, done.stderr
    for values in ({}, SETS["dra"]):
        before = immutable_fields(rendered(values))
        assert before == immutable_fields(rendered(values, chart=tmp_path / "selfhost-model-9.9.9.tgz"))


def test_another_count_of_devices_is_another_claim_template():
    one_card, two_cards = rendered(DRA), rendered(merged(DRA, TWO))
    names = [one(found, "ResourceClaimTemplate")["metadata"]["name"] for found in (one_card, two_cards)]
    assert len(set(names)) == 2
    for found, name in zip((one_card, two_cards), names, strict=True):
        claims = one(found, "Deployment")["spec"]["template"]["spec"]["resourceClaims"]
        assert claims == [{"name": "gpus", "resourceClaimTemplateName": name}]


def test_the_hash_in_a_name_is_that_of_the_spec_as_json():
    import hashlib
    import json

    found = rendered(merged(EVERYTHING, DRA))
    for item in (one(found, "Job"), one(found, "ResourceClaimTemplate")):
        text = json.dumps(item["spec"], sort_keys=True, separators=(",", ":"), ensure_ascii=False)
        assert item["metadata"]["name"].endswith("-" + hashlib.sha256(text.encode()).hexdigest()[:8])


def test_a_pod_is_not_replaced_for_a_label_or_a_new_version_of_the_chart():
    """Each replacement is a load of minutes."""
    quiet = {"commonLabels": {"a": "b"}, "commonAnnotations": {"c": "d"}, "selfhost": {"version": "2"}, "queue": "q",
             "service": {"port": 80}, "monitoring": {"podMonitor": True}, "weights": {"size": "99Gi"}}  # fmt: skip
    pods = [one(rendered(values), "Deployment")["spec"]["template"] for values in ({}, quiet)]
    assert pods[0] == pods[1]
