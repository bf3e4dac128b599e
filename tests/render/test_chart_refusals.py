"""What the chart does not take, and the words in which it says so."""

import pytest

from tests.render.chart import CHART, helm, refused, template
from tests.render.chart_values import AMD, CPU, SGLANG, merged

SCHEMA = {
    "typo at the top": ({"acelerator": {"count": 1}}, "additional properties 'acelerator' not allowed"),
    "typo below": ({"accelerator": {"cuont": 1}}, "at '/accelerator': additional properties 'cuont' not allowed"),
    "typo of a probe": ({"probes": {"startupBudget": 90}}, "additional properties 'startupBudget' not allowed"),
    "half a card": ({"accelerator": {"count": 0.5}}, "at '/accelerator/count': got number, want integer"),
    "card in words": ({"accelerator": {"count": "1"}}, "at '/accelerator/count': got string, want integer"),
    "vendor": ({"accelerator": {"vendor": "Nvidia"}}, "at '/accelerator/vendor': value must be one of"),
    "engine": ({"engine": {"name": "llama.cpp"}}, "at '/engine/name': value must be one of 'vllm', 'sglang'"),
    "digest": ({"image": {"digest": "sha256:abc"}}, "at '/image/digest'"),
    "tag in the repository": ({"image": {"repository": "vllm/vllm-openai:v0.33.0"}}, "at '/image/repository'"),
    "unit": ({"resources": {"limits": {"memory": "16GiB"}}}, "at '/resources/limits/memory': '16GiB' does not match"),
    "bytes": ({"resources": {"requests": {"memory": 16}}}, "at '/resources/requests/memory': got number, want string"),
    "size of a volume": ({"weights": {"size": "24 GB"}}, "at '/weights/size'"),
    "access mode": ({"weights": {"accessModes": ["RWX"]}}, "at '/weights/accessModes/0': value must be one of"),
    "folder outside": ({"weights": {"subPath": "../other"}}, "at '/weights/subPath'"),
    "Gt with a unit": (
        {"accelerator": {"nodeLabels": [{"key": "nvidia.com/gpu.memory", "operator": "Gt", "values": ["16Gi"]}]}},
        "'16Gi' does not match pattern '^[0-9]+$'",
    ),
    "In without values": (
        {"accelerator": {"nodeLabels": [{"key": "nvidia.com/gpu.product", "operator": "In"}]}},
        "missing property 'values'",
    ),
    "budget without tokens": (
        {"reasoning": {"mode": "budget"}},
        "at '/reasoning/budget_tokens': got null, want integer",
    ),
    "effort without effort": ({"reasoning": {"mode": "effort"}}, "at '/reasoning/effort': got null, want string"),
    "tokens with on": ({"reasoning": {"budget_tokens": 100}}, "at '/reasoning/budget_tokens': got number, want null"),
    "effort with off": (
        {"reasoning": {"mode": "off", "effort": "low"}},
        "at '/reasoning/effort': got string, want null",
    ),
    "mode": ({"reasoning": {"mode": "think"}}, "at '/reasoning/mode': value must be one of"),
    "label": ({"podLabels": {"model": "Qwen/Qwen3-4B"}}, "at '/podLabels/model'"),
    "class of devices": ({"accelerator": {"dra": {"apiVersion": "v1"}}}, "at '/accelerator/dra/apiVersion'"),
    "scaled to nothing": ({"autoscaling": {"minReplicas": 0}}, "at '/autoscaling/minReplicas': minimum: got 0, want 1"),
    "token": ({"fetch": {"token": "hf_x"}}, "additional properties 'token' not allowed"),
    "key": ({"apiKey": {"value": "x"}}, "additional properties 'value' not allowed"),
}


@pytest.mark.parametrize("name", SCHEMA)
def test_the_schema_refuses(name):
    values, words = SCHEMA[name]
    said = refused(values)
    assert words in said
    assert "values don't meet the specifications of the schema" in said


WAY = {"podMonitor": True, "serviceMonitor": True}
PAIRS = {
    "ranks": (
        {"parallelism": {"tensor": 2, "data": 2}},
        (
            "accelerator.count is 1, and parallelism.tensor × pipeline × data is 2 × 1 × 2 = 4: one rank has one card. "
            "Set accelerator.count=4."
        ),
    ),
    "no card for an image with cards": (
        {"accelerator": {"mode": "none"}},
        "accelerator.mode is none with accelerator.vendor nvidia: the pod would get no card.",
    ),
    "image of another vendor": (
        {"engine": {"backend": "rocm"}},
        "engine.backend is rocm and accelerator.vendor is nvidia: an image for rocm needs accelerator.vendor amd",
    ),
    "card for an image without": (
        merged(CPU, {"accelerator": {"vendor": "nvidia"}}),
        "engine.backend is cpu and accelerator.vendor is nvidia",
    ),
    "processor with a plugin": (
        merged(CPU, {"accelerator": {"mode": "devicePlugin"}}),
        "accelerator.vendor is none, so nothing can be asked for by devicePlugin: set accelerator.mode=none.",
    ),
    "resource of another vendor": (
        merged(AMD, {"accelerator": {"resource": "nvidia.com/gpu"}}),
        "accelerator.resource is nvidia.com/gpu and accelerator.vendor is amd",
    ),
    "no resource": ({"accelerator": {"resource": ""}}, "accelerator.resource is empty: name it as a node does"),
    "two slices": (
        {"accelerator": {"resource": "nvidia.com/mig-1g.10gb", "count": 2}, "parallelism": {"data": 2}},
        "accelerator.resource is nvidia.com/mig-1g.10gb, a slice or share of a card, and 2 are asked for",
    ),
    "two ranks on a slice": (
        {"accelerator": {"resource": "nvidia.com/mig-1g.10gb"}, "parallelism": {"tensor": 2}},
        "a slice or share of a card, and 2 are asked for",
    ),
    "card among the resources": (
        {"resources": {"limits": {"nvidia.com/gpu": 1}}},
        "resources.limits holds nvidia.com/gpu: cards are asked for by accelerator.resource and accelerator.count",
    ),
    "replicas of one volume": (
        {"replicaCount": 2},
        "up to 2 replicas, and weights.accessModes is ReadWriteOnce: the second one waits for the volume for ever",
    ),
    "autoscaled replicas of one volume": (
        {"autoscaling": {"enabled": True, "maxReplicas": 3, "prometheus": "http://p:9090"}},
        "up to 3 replicas, and weights.accessModes is ReadWriteOnce",
    ),
    "one pod alone may mount": (
        {"weights": {"accessModes": ["ReadWriteOncePod"]}},
        "weights.accessModes is ReadWriteOncePod with fetch.enabled: the fetch job and the engine's pod both mount",
    ),
    "nobody may write": (
        {"weights": {"existingClaim": "models", "accessModes": ["ReadOnlyMany"]}},
        "weights.accessModes is ReadOnlyMany, and something writes there",
    ),
    "mode that was not planned": (
        {"reasoning": {"mode": "budget", "budget_tokens": 300}},
        (
            "reasoning.mode is budget=300, and these values know off, on: "
            "selfhost render helm Qwen/Qwen3-4B --reasoning budget=300"
        ),
    ),
    "mode that was taken out": (
        {"reasoning": {"mode": "off", "modes": {"off": None}}},
        "reasoning.mode is off, and these values know on: selfhost render helm Qwen/Qwen3-4B --reasoning off",
    ),
    "other budget than planned": (
        {
            "reasoning": {
                "mode": "budget",
                "budget_tokens": 300,
                "modes": {"budget": {"request": {"thinking_token_budget": 512}}},
            }
        },
        "reasoning.budget_tokens is 300, and reasoning.modes.budget was planned for 512",
    ),
    "precision that was not planned": (
        {"precision": {"weights": "int4"}},
        (
            "precision.weights is int4, and these values know bf16, fp8: "
            "selfhost render helm Qwen/Qwen3-4B --precision int4"
        ),
    ),
    "precision of the cache": (
        {"precision": {"kv": "fp4"}},
        "precision.kv is fp4, and these values know auto, fp8: selfhost render helm Qwen/Qwen3-4B --kv-cache fp4",
    ),
    "published without a key": (
        merged(SGLANG, {"service": {"type": "LoadBalancer"}}),
        "service.type is LoadBalancer, which publishes every path: SGLang has no key here at all.",
    ),
    "published with paths that ask for no key": (
        {"service": {"type": "NodePort"}},
        (
            "service.type is NodePort, which publishes every path: vLLM asks for its key below /v1, /v2, /inference "
            "and /cohere only, and /invocations, which generates as well, is open."
        ),
    ),
    "a spare card with a volume of one node": (
        {"rollout": {"surge": 1}},
        (
            "rollout.surge is 1, and weights.accessModes is ReadWriteOnce: a new pod on another node waits for the "
            "volume for ever"
        ),
    ),
    "more memory asked for than allowed": (
        {"resources": {"requests": {"memory": "13Gi"}}},
        "resources.requests.memory is 13Gi, above the limit of 12Gi",
    ),
    "more shared memory than memory": (
        {"shm": {"size": "12Gi"}},
        "shm.size is 12Gi, and resources.limits.memory 12Gi, which it counts against",
    ),
    "two times to end": (
        {"extraArgs": ["--shutdown-timeout", "60"], "drain": {"engineSeconds": 600}},
        "drain.engineSeconds is 600, and the arguments say --shutdown-timeout 60",
    ),
    "image of the test without a tag": (
        {"test": {"image": {"repository": "python"}}},
        "test.image.repository is python without a tag",
    ),
    "ingress without a key": (
        merged(SGLANG, {"ingress": {"enabled": True, "host": "a.example.org", "tlsSecret": "t"}}),
        "SGLang runs without a key here",
    ),
    "key for sglang": (
        merged(SGLANG, {"apiKey": {"existingSecret": "keys"}}),
        "apiKey.existingSecret is set, and SGLang gets no key from this chart",
    ),
    "ingress in the clear": (
        {"ingress": {"enabled": True, "host": "a.example.org"}},
        "kubectl create secret tls NAME --cert=tls.crt --key=tls.key --namespace team",
    ),
    "route without a gateway": ({"httpRoute": {"enabled": True}}, "httpRoute.enabled needs httpRoute.parentRefs"),
    "mask": (
        {"engine": {"env": {"CUDA_VISIBLE_DEVICES": "0"}}},
        "CUDA_VISIBLE_DEVICES selects cards, and in a cluster only accelerator.count does",
    ),
    "mask beside": (
        {"extraEnv": [{"name": "NVIDIA_VISIBLE_DEVICES", "value": "all"}]},
        "NVIDIA_VISIBLE_DEVICES selects cards",
    ),
    "mask of a mode": (
        {"reasoning": {"modes": {"on": {"env": {"ROCR_VISIBLE_DEVICES": "0"}}}}},
        "ROCR_VISIBLE_DEVICES selects cards",
    ),
    "token in the engine": (
        {"extraEnv": [{"name": "HF_TOKEN", "value": "x"}]},
        "HF_TOKEN is not for the engine, which asks no hub: name a Secret in fetch.existingSecret.",
    ),
    "key in the values": (
        {"engine": {"env": {"VLLM_API_KEY": "x"}}},
        "VLLM_API_KEY is set by apiKey alone, so that it does not lie readable in the release",
    ),
    "key beside": (
        {"extraEnv": [{"name": "VLLM_API_KEY", "valueFrom": {"secretKeyRef": {"name": "k", "key": "k"}}}]},
        "name a Secret in apiKey.existingSecret.",
    ),
    "variable twice": (
        {"extraEnv": [{"name": "A", "value": "1"}, {"name": "A", "value": "2"}]},
        "extraEnv holds A twice.",
    ),
    "token in the values": (
        {"fetch": {"env": {"HF_TOKEN": "hf_x"}}},
        "fetch.env holds HF_TOKEN, which would lie readable in the release: name a Secret in fetch.existingSecret.",
    ),
    "token by its old name": (
        {"fetch": {"env": {"HUGGING_FACE_HUB_TOKEN": "hf_x"}}},
        "fetch.env holds HUGGING_FACE_HUB_TOKEN, which would lie readable in the release",
    ),
    "key in the arguments": ({"extraArgs": ["--api-key=x"]}, "an argument holds the key"),
    "key with underscores": ({"extraArgs": ["--api_key=x"]}, "an argument holds the key"),
    "key of an administrator": ({"engine": {"args": ["--admin_api-key", "x"]}}, "an argument holds the key"),
    "key in the command": (
        {"engine": {"command": ["vllm", "serve", "--api-key", "x"]}},
        "an argument holds the key",
    ),
    "port": ({"engine": {"port": 9000}}, "engine.port is 9000, and the arguments say --port 8000"),
    "name": (
        {"model": {"servedName": "other"}},
        "model.servedName is other, and the arguments say --served-model-name",
    ),
    "two tensor sizes": (
        {"extraArgs": ["--tensor_parallel_size=2"]},
        "parallelism.tensor is 1, and the arguments say --tensor-parallel-size 2: say the same in both.",
    ),
    "keda without prometheus": (
        {"weights": {"accessModes": ["ReadWriteMany"]}, "autoscaling": {"enabled": True}},
        "autoscaling.kind is keda, and autoscaling.prometheus is empty",
    ),
    "more at least than at most": (
        {"autoscaling": {"enabled": True, "kind": "hpa", "minReplicas": 3, "maxReplicas": 2}},
        "autoscaling.minReplicas is 3 and maxReplicas 2.",
    ),
    "two monitors": ({"monitoring": WAY}, "each series would come twice"),
    "no metrics": (
        merged(SGLANG, {"engine": {"args": []}, "monitoring": {"podMonitor": True}}),
        "SGLang shows metrics only with --enable-metrics",
    ),
}


@pytest.mark.parametrize("name", PAIRS)
def test_the_chart_refuses(name):
    values, words = PAIRS[name]
    assert words in refused(values)


def test_all_that_is_wrong_is_said_at_once():
    said = refused({"replicaCount": 2, "precision": {"weights": "int4"}, "ingress": {"enabled": True}})
    assert said.count("\n- ") == 3


@pytest.mark.parametrize(
    ("version", "taken"), [("1.26.9", False), ("1.27.0", True), ("1.27.3-gke.100", True), ("1.37.0+k3s1", True)]
)
def test_clusters_of_1_27_and_later_are_taken(version, taken):
    done = helm("template", "it", CHART, "--kube-version", version)
    assert (done.returncode == 0) == taken
    assert taken or "chart requires kubeVersion: >=1.27.0-0" in done.stderr


@pytest.mark.parametrize("size", ["11.9Gi", "12287Mi", "12884901k"])
def test_amounts_are_compared_whatever_their_units(size):
    helm_says = template({"shm": {"size": size}})
    assert helm_says.returncode == 0, helm_says.stderr
    assert "shm.size" in refused({"shm": {"size": {"11.9Gi": "12.1Gi", "12287Mi": "12289Mi"}.get(size, "12885M")}})
