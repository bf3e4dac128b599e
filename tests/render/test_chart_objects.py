"""What the rendered pods and the volume do: cards, arguments, probes, updates, storage, secrets."""

import pytest

from tests.render.chart import engine, env_of, merged, one, pods, rendered
from tests.render.chart_values import AMD, CPU, DRA, EVERYTHING, SETS, SGLANG, TWO

MASKS = {"CUDA_VISIBLE_DEVICES", "NVIDIA_VISIBLE_DEVICES", "HIP_VISIBLE_DEVICES", "ROCR_VISIBLE_DEVICES"}


@pytest.fixture(params=SETS)
def everywhere(request):
    return rendered(SETS[request.param])


def test_only_the_engine_gets_cards_and_no_other_container_sees_one(everywhere):
    for owner, pod in pods(everywhere):
        assert not {"hostNetwork", "hostIPC", "hostPID", "nodeName"} & set(pod)
        for container in [*pod.get("initContainers", []), *pod["containers"]]:
            asked = [name for name in container["resources"].get("limits", {}) if "/" in name]
            claimed = container["resources"].get("claims")
            env = env_of(container)
            if container["name"] == "engine" and (asked or claimed):
                assert not MASKS & set(env)
            else:
                assert not asked
                assert not claimed
                assert env["NVIDIA_VISIBLE_DEVICES"] == "void", owner["metadata"]["name"]


def test_a_namespace_that_enforces_restricted_takes_every_pod(everywhere):
    """The list of https://kubernetes.io/docs/concepts/security/pod-security-standards/#restricted."""
    volumes = {
        "configMap",
        "csi",
        "downwardAPI",
        "emptyDir",
        "ephemeral",
        "persistentVolumeClaim",
        "projected",
        "secret",
    }
    for _, pod in pods(everywhere):
        assert pod["securityContext"]["runAsNonRoot"] is True
        assert pod["securityContext"]["runAsUser"] != 0
        assert pod["securityContext"]["seccompProfile"]["type"] == "RuntimeDefault"
        for volume in pod.get("volumes", []):
            assert set(volume) - {"name"} <= volumes
        for container in [*pod.get("initContainers", []), *pod["containers"]]:
            assert container["securityContext"]["allowPrivilegeEscalation"] is False
            assert container["securityContext"]["capabilities"] == {"drop": ["ALL"]}
            assert not container["securityContext"].get("privileged")


def test_no_pod_has_a_token_service_links_or_a_mount_without_a_volume(everywhere):
    for _, pod in pods(everywhere):
        assert pod["automountServiceAccountToken"] is False
        assert pod["enableServiceLinks"] is False
        named = [volume["name"] for volume in pod.get("volumes", [])]
        assert len(named) == len(set(named))
        for container in [*pod.get("initContainers", []), *pod["containers"]]:
            places = [mount["mountPath"] for mount in container.get("volumeMounts", [])]
            assert len(places) == len(set(places))
            assert {mount["name"] for mount in container.get("volumeMounts", [])} <= set(named)
            assert "memory" in container["resources"]["limits"]


def test_only_the_fetch_job_sees_the_token_of_the_hub():
    found = rendered(EVERYTHING)
    holders = [
        container["name"]
        for _, pod in pods(found)
        for container in pod["containers"]
        if "HF_TOKEN" in env_of(container)
    ]
    assert holders == ["fetch"]
    assert env_of(one(found, "Job")["spec"]["template"]["spec"]["containers"][0])["HF_TOKEN"] == ("hub", "HF_TOKEN")
    assert not [item for item in found if item["kind"] == "Secret"]


@pytest.mark.parametrize(
    ("values", "resource", "count"),
    [
        ({}, "nvidia.com/gpu", 1),
        (TWO, "nvidia.com/gpu", 2),
        (AMD, "amd.com/gpu", 1),
        (SETS["intel"], "gpu.intel.com/xe", 1),
        (SETS["mig"], "nvidia.com/mig-3g.40gb", 1),
        (SETS["shared"], "nvidia.com/gpu.shared", 1),
    ],
)
def test_cards_are_a_limit_and_a_request_at_once(values, resource, count):
    resources = engine(rendered(values))["resources"]
    # text: a server that applies by itself refuses a number where it expects an amount
    assert resources["limits"][resource] == resources["requests"][resource] == str(count)
    assert resources["limits"]["memory"] == "12Gi"


def test_a_project_may_choose_the_user():
    values = {"podSecurityContext": {"runAsUser": None, "runAsGroup": None, "fsGroup": None}}
    for _, pod in pods(rendered(values)):
        assert set(pod["securityContext"]) == {"runAsNonRoot", "fsGroupChangePolicy", "seccompProfile"}


@pytest.mark.parametrize(
    ("image", "wanted"),
    [
        ({}, "docker.io/vllm/vllm-openai:v0.33.0"),
        ({"registry": "", "tag": "nightly"}, "vllm/vllm-openai:nightly"),
        ({"registry": "mirror.example.org:5000/hub/"}, "mirror.example.org:5000/hub/vllm/vllm-openai:v0.33.0"),
        ({"tag": "x", "digest": f"sha256:{'0' * 64}"}, f"docker.io/vllm/vllm-openai@sha256:{'0' * 64}"),
    ],
)
def test_the_image_is_the_same_everywhere(image, wanted):
    found = [
        container["image"]
        for _, pod in pods(rendered({"image": image}))
        for container in [*pod.get("initContainers", []), *pod["containers"]]
    ]
    assert found == [wanted] * 4


def test_the_processor_gets_no_card():
    container = engine(rendered(CPU))
    assert container["resources"]["requests"] == {"cpu": "8", "memory": "12Gi", "ephemeral-storage": "4Gi"}
    assert env_of(container)["NVIDIA_VISIBLE_DEVICES"] == "void"
    assert "CUDA_DEVICE_ORDER" not in env_of(container)


@pytest.mark.parametrize("version", ["v1", "v1beta2", "v1beta1"])
def test_a_claim_is_written_as_its_version_reads_it(version):
    api = f"resource.k8s.io/{version}"
    found = rendered(merged(DRA, TWO, {"accelerator": {"dra": {"apiVersion": api}}}))
    template = one(found, "ResourceClaimTemplate")
    assert template["apiVersion"] == api
    (request,) = template["spec"]["spec"]["devices"]["requests"]
    assert request.pop("name") == "gpu"
    assert (request if version == "v1beta1" else request["exactly"]) == {
        "deviceClassName": "gpu.nvidia.com",
        "allocationMode": "ExactCount",
        "count": 2,
        "selectors": [
            {"cel": {"expression": "device.capacity['gpu.nvidia.com'].memory.compareTo(quantity('16Gi')) >= 0"}}
        ],
    }
    pod = one(found, "Deployment")["spec"]["template"]["spec"]
    name = template["metadata"]["name"]
    assert pod["resourceClaims"] == [{"name": "gpus", "resourceClaimTemplateName": name}]
    assert pod["containers"][0]["resources"]["claims"] == [{"name": "gpus"}]
    assert not [name for name in pod["containers"][0]["resources"]["limits"] if "/" in name]


def test_arguments_stand_in_their_order_and_reach_the_engine_as_they_are():
    container = engine(rendered(EVERYTHING))
    assert container["args"][-11:] == [
        "--quantization", "fp8_per_channel", "--kv-cache-dtype", "fp8",
        "--reasoning-parser", "qwen3", "--default-chat-template-kwargs", '{"enable_thinking": false}',
        "--max-num-seqs", "64", "--note=$(POD)",
    ]  # fmt: skip
    assert container["args"][:2] == ["/model", "--served-model-name"]
    env = env_of(container)
    assert env["PRICE"] == "$$(HOME) costs $$$$5"  # which the kubelet reads as $(HOME) costs $$5
    assert env["VLLM_API_KEY"] == ("keys", "qwen")
    assert [each["name"] for each in container["env"]] == [
        "CUDA_DEVICE_ORDER", "HF_HUB_OFFLINE", "HOME", "PRICE", "REQUESTS_CA_BUNDLE", "SSL_CERT_FILE",
        "TORCHINDUCTOR_CACHE_DIR", "TRANSFORMERS_OFFLINE", "USER", "VLLM_LOGGING_LEVEL", "VLLM_API_KEY", "POD",
    ]  # fmt: skip


def test_a_large_number_is_no_power_of_ten():
    container = engine(
        rendered({"extraArgs": ["--max-num-batched-tokens", 1000000], "engine": {"env": {"N": 2000000}}})
    )
    assert container["args"][-1] == "1000000"
    assert env_of(container)["N"] == "2000000"


def test_a_variable_given_twice_is_taken_from_the_user():
    values = {
        "engine": {"env": {"OMP": "1"}},
        "extraEnv": [{"name": "OMP", "value": "2"}, {"name": "HOME", "value": "/x"}],
    }
    env = env_of(engine(rendered(values)))
    assert (env["OMP"], env["HOME"]) == ("2", "/x")


@pytest.mark.parametrize(
    ("values", "option"),
    [(TWO, "--tensor-parallel-size"), (merged(SGLANG, TWO), "--tp-size")],
)
def test_more_ranks_are_an_argument_unless_it_is_there(values, option):
    assert engine(rendered(values))["args"].count(option) == 1
    given = merged(values, {"extraArgs": [f"{option}=2"]})
    assert option not in engine(rendered(given))["args"]


def test_probes_wait_for_a_slow_load_and_forgive_a_busy_engine():
    container = engine(rendered({"probes": {"startupBudgetSeconds": 1795}}))
    http = {"path": "/health", "port": "http"}
    assert container["startupProbe"] == {
        "httpGet": http, "periodSeconds": 10, "failureThreshold": 180, "timeoutSeconds": 5,
    }  # fmt: skip
    assert container["readinessProbe"] == {
        "httpGet": http, "periodSeconds": 5, "failureThreshold": 3, "timeoutSeconds": 5,
    }  # fmt: skip
    assert container["livenessProbe"] == {
        "httpGet": http, "periodSeconds": 15, "failureThreshold": 8, "timeoutSeconds": 10,
    }  # fmt: skip
    own = {"exec": {"command": ["true"]}}
    assert engine(rendered({"probes": {"liveness": own}}))["livenessProbe"] == own


@pytest.mark.parametrize(
    ("values", "seconds"),
    [
        ({}, 900 + 3600 + 900),
        ({"fetch": {"enabled": False}}, 900 + 900),
        ({"probes": {"startupBudgetSeconds": 5000}, "fetch": {"budgetSeconds": 7200}}, 5000 + 7200 + 900),
        ({"rollout": {"progressDeadlineSeconds": 60}}, 60),
    ],
)
def test_the_progress_deadline_is_above_fetching_and_loading(values, seconds):
    assert one(rendered(values), "Deployment")["spec"]["progressDeadlineSeconds"] == seconds


@pytest.mark.parametrize(
    ("surge", "wanted"), [(0, {"maxSurge": 0, "maxUnavailable": 1}), (2, {"maxSurge": 2, "maxUnavailable": 0})]
)
def test_an_update_waits_for_no_card_unless_one_is_spare(surge, wanted):
    values = {"rollout": {"surge": surge}, "weights": {"accessModes": ["ReadWriteMany"]}}
    spec = one(rendered(values), "Deployment")["spec"]
    assert spec["strategy"] == {"type": "RollingUpdate", "rollingUpdate": wanted}


def test_there_is_time_to_end():
    pod = one(rendered({"drain": {"preStopSeconds": 20, "engineSeconds": 100}}), "Deployment")["spec"]["template"][
        "spec"
    ]
    assert pod["terminationGracePeriodSeconds"] == 135
    assert pod["containers"][0]["lifecycle"] == {"preStop": {"exec": {"command": ["/bin/sleep", "20"]}}}


@pytest.mark.parametrize(("name", "wanted"), [("auto", None), ("none", None), ("nvidia", "nvidia")])
def test_a_runtime_class_is_set_only_by_name(name, wanted):
    pod = one(rendered({"runtimeClassName": name}), "Deployment")["spec"]["template"]["spec"]
    assert pod.get("runtimeClassName") == wanted


@pytest.mark.parametrize(("given", "wanted"), [(None, False), ("", ""), ("fast", "fast")])
def test_no_storage_class_and_an_empty_one_are_two_things(given, wanted):
    spec = one(rendered({"weights": {"storageClassName": given}}), "PersistentVolumeClaim")["spec"]
    assert spec.get("storageClassName", False) == wanted


def test_the_weights_outlive_the_release_if_they_are_kept():
    keep = {"helm.sh/resource-policy": "keep"}
    assert one(rendered(), "PersistentVolumeClaim")["metadata"]["annotations"] == keep
    assert "annotations" not in one(rendered({"weights": {"keep": False}}), "PersistentVolumeClaim")["metadata"]


def test_the_fetch_job_goes_where_the_volume_is_unless_every_node_can_have_it():
    found = rendered()
    deployment = one(found, "Deployment")["spec"]
    job = one(found, "Job")["spec"]["template"]["spec"]
    (term,) = job["affinity"]["podAffinity"]["requiredDuringSchedulingIgnoredDuringExecution"]
    assert term["topologyKey"] == "kubernetes.io/hostname"
    assert term["labelSelector"]["matchLabels"].items() <= deployment["template"]["metadata"]["labels"].items()
    assert job["tolerations"] == deployment["template"]["spec"]["tolerations"]
    shared = rendered({"weights": {"accessModes": ["ReadWriteMany"]}})
    assert "affinity" not in one(shared, "Job")["spec"]["template"]["spec"]


def test_what_is_fetched_is_what_the_engine_mounts():
    found = rendered(EVERYTHING)
    job = one(found, "Job")["spec"]["template"]["spec"]["containers"][0]
    pod = one(found, "Deployment")["spec"]["template"]["spec"]
    places = [
        next(mount["subPath"] for mount in container["volumeMounts"] if mount["name"] == "weights")
        for container in (job, pod["initContainers"][0], pod["containers"][0])
    ]
    assert len(set(places)) == 1
    assert env_of(job)["SELFHOST_WANTED"] == env_of(pod["initContainers"][0])["SELFHOST_WANTED"]
    assert env_of(job)["HF_ENDPOINT"] == "http://hub.example.org:8081"


def test_a_name_that_yaml_would_read_as_something_else_stays_a_name():
    values = {
        "fullnameOverride": "on",
        "weights": {"existingClaim": "123", "subPath": "2024"},
        "apiKey": {"existingSecret": "yes", "existingSecretKey": "0"},
        "fetch": {"existingSecret": "null", "existingSecretKey": "1"},
        "priorityClassName": "true",
        "serviceAccount": {"create": False, "name": "7"},
    }
    found = rendered(values)
    pod = one(found, "Deployment")["spec"]["template"]["spec"]
    assert one(found, "Service")["metadata"]["name"] == "on"
    assert pod["volumes"][0]["persistentVolumeClaim"]["claimName"] == "123"
    assert pod["containers"][0]["volumeMounts"][0]["subPath"] == "2024"
    assert (pod["priorityClassName"], pod["serviceAccountName"]) == ("true", "7")
    assert env_of(pod["containers"][0])["VLLM_API_KEY"] == ("yes", "0")
    assert env_of(one(found, "Job")["spec"]["template"]["spec"]["containers"][0])["HF_TOKEN"] == ("null", "1")
