"""Sets of values that the chart has to render: engines, vendors, allocations, and every option on."""

from tests.render.chart import merged

SGLANG = {
    "engine": {
        "name": "sglang",
        "version": "0.5.6",
        "command": ["python3", "-m", "sglang.launch_server"],
        "args": [
            "--model-path", "/model", "--served-model-name", "qwen3-4b", "--host", "0.0.0.0", "--port", "8000",
            "--enable-metrics",
        ],
    },
    "image": {"repository": "lmsysorg/sglang", "tag": "v0.5.6"},
}  # fmt: skip
AMD = {
    "engine": {"backend": "rocm"},
    "image": {"repository": "vllm/vllm-openai-rocm"},
    "accelerator": {
        "vendor": "amd",
        "resource": "amd.com/gpu",
        "tolerations": [{"key": "amd.com/gpu", "operator": "Exists", "effect": "NoSchedule"}],
        "nodeLabels": [{"key": "amd.com/gpu.product-name", "operator": "In", "values": ["AMD_Instinct_MI300X_OAM"]}],
    },
    "podSecurityContext": {"supplementalGroups": [44, 992]},
}
INTEL = {
    "engine": {"backend": "xpu"},
    "image": {"repository": "intel/vllm"},
    "accelerator": {"vendor": "intel", "resource": "gpu.intel.com/xe", "tolerations": []},
}
CPU = {
    "engine": {"backend": "cpu", "env": {"VLLM_CPU_KVCACHE_SPACE": "4"}},
    "image": {"repository": "vllm/vllm-openai-cpu"},
    "accelerator": {"vendor": "none", "mode": "none", "resource": "", "count": 0, "tolerations": []},
    "resources": {"requests": {"cpu": "8"}, "limits": {"cpu": "8"}},
}
TWO = {
    "parallelism": {"tensor": 2},
    "accelerator": {"count": 2},
    "shm": {"size": "4Gi"},
}
MIG = {
    "accelerator": {
        "resource": "nvidia.com/mig-3g.40gb",
        "nodeLabels": [{"key": "nvidia.com/mig-3g.40gb.memory", "operator": "Gt", "values": ["40000"]}],
    }
}
SHARED = {
    "accelerator": {
        "resource": "nvidia.com/gpu.shared",
        "nodeLabels": [{"key": "nvidia.com/gpu.sharing-strategy", "operator": "Exists"}],
    }
}
DRA = {
    "accelerator": {
        "mode": "dra",
        "dra": {
            "selectors": ["device.capacity['gpu.nvidia.com'].memory.compareTo(quantity('16Gi')) >= 0"],
        },
    }
}
DRA_PAIR = merged(DRA, TWO, {
    "accelerator": {"dra": {"constraints": [{"requests": ["gpu"], "matchAttribute": "gpu.nvidia.com/parentUUID"}]}},
})  # fmt: skip
MANY = {"replicaCount": 3, "weights": {"accessModes": ["ReadWriteMany"]}}
EVERYTHING = {
    "nameOverride": "model",
    "commonLabels": {"team": "search"},
    "commonAnnotations": {"contact": "search@example.org"},
    "model": {"id": "Qwen/Qwen3-4B", "revision": "1cfa9a7208912126459214e8b04321603b3df60c"},
    "image": {"registry": "registry.example.org:5000", "digest": f"sha256:{'a' * 64}", "pullPolicy": "Always"},
    "imagePullSecrets": ["registry"],
    "engine": {"env": {"VLLM_LOGGING_LEVEL": "INFO", "PRICE": "$(HOME) costs $$5"}},
    "extraArgs": ["--max-num-seqs", 64, "--note=$(POD)"],
    "extraEnv": [{"name": "POD", "valueFrom": {"fieldRef": {"fieldPath": "metadata.name"}}}],
    "extraVolumes": [{"name": "notes", "configMap": {"name": "notes"}}],
    "extraVolumeMounts": [{"name": "notes", "mountPath": "/notes"}],
    "extraObjects": [
        {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "notes"}, "data": {"a": "b"}},
        "apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: {{ .Release.Name }}-more\ndata: {}\n",
    ],
    "reasoning": {"mode": "off"},
    "precision": {"weights": "fp8", "kv": "fp8"},
    "accelerator": {
        "nodeLabels": [
            {"key": "nvidia.com/gpu.memory", "operator": "Gt", "values": ["15000"]},
            {"key": "nvidia.com/gpu.sharing-strategy", "operator": "In", "values": ["none"]},
        ]
    },
    "runtimeClassName": "nvidia",
    "rollout": {"surge": 1},
    "weights": {"accessModes": ["ReadWriteMany"], "storageClassName": "shared", "size": "40Gi"},
    "fetch": {
        "existingSecret": "hub",
        "endpoint": "http://hub.example.org:8081",
        "env": {"HTTPS_PROXY": "http://proxy.example.org:3128/"},
        "include": ["*.safetensors", "*.json"],
    },
    "apiKey": {"existingSecret": "keys", "existingSecretKey": "qwen"},
    "ca": {"existingConfigMap": "authority"},
    "serviceAccount": {"annotations": {"why": "none"}},
    "podAnnotations": {"sidecar.istio.io/inject": "false"},
    "podLabels": {"tier": "models"},
    "nodeSelector": {"kubernetes.io/arch": "amd64"},
    "tolerations": [{"key": "reserved", "operator": "Equal", "value": "models", "effect": "NoSchedule"}],
    "priorityClassName": "models",
    "schedulerName": "volcano",
    "service": {"annotations": {"a": "b"}},
    "ingress": {
        "enabled": True, "className": "nginx", "host": "qwen.example.org", "tlsSecret": "qwen-tls",
        "annotations": {"nginx.ingress.kubernetes.io/proxy-body-size": "8m"},
    },
    "httpRoute": {
        "enabled": True, "parentRefs": [{"name": "web", "namespace": "gateways", "sectionName": "https"}],
        "hostnames": ["qwen.example.org"],
    },
    "networkPolicy": {"namespaces": ["ingress-nginx", "monitoring"], "egress": True},
    "monitoring": {"podMonitor": True, "labels": {"release": "prometheus"}},
    "autoscaling": {"enabled": True, "minReplicas": 2, "maxReplicas": 4, "prometheus": "http://prometheus.monitoring:9090"},
    "queue": "models",
    "test": {"image": {"repository": "library/python", "tag": "3.13-slim"}},
    "selfhost": {"name": "qwen3-4b", "digest": "0123456789abcdef", "version": "0.7.0"},
    "global": {"anything": True},
}  # fmt: skip

SETS = {
    "defaults": {},
    "sglang": SGLANG,
    "amd": AMD,
    "intel": INTEL,
    "cpu": CPU,
    "two-cards": TWO,
    "two-cards-sglang": merged(SGLANG, TWO),
    "two-cards-amd": merged(AMD, TWO),
    "mig": MIG,
    "shared": SHARED,
    "dra": DRA,
    "dra-pair": DRA_PAIR,
    "dra-v1beta2": merged(DRA, {"accelerator": {"dra": {"apiVersion": "resource.k8s.io/v1beta2"}}}),
    "dra-v1beta1": merged(DRA_PAIR, {"accelerator": {"dra": {"apiVersion": "resource.k8s.io/v1beta1"}}}),
    "dra-amd": merged(AMD, {"accelerator": {"mode": "dra", "dra": {"deviceClassName": "gpu.amd.com"}}}),
    "many": MANY,
    "hpa": merged(MANY, {"replicaCount": None, "autoscaling": {"enabled": True, "kind": "hpa"}}),
    "everything": EVERYTHING,
    "everything-sglang": merged(
        EVERYTHING, SGLANG,
        {"apiKey": {"existingSecret": ""}, "ingress": {"enabled": False}, "httpRoute": {"enabled": False}},
    ),
    "off": {"reasoning": {"mode": "off"}},
    "budget": {
        "reasoning": {
            "mode": "budget",
            "budget_tokens": 512,
            "modes": {
                "budget=512": {
                    "args": ["--reasoning-parser", "qwen3"],
                    "request": {"thinking_token_budget": 512},
                    "thinks": True,
                }
            },
        }
    },
    "effort": {
        "reasoning": {"mode": "effort", "effort": "low", "modes": {"effort=low": {"args": ["--x"], "thinks": True}}}
    },
    "no-reasoning": {"reasoning": {"mode": "", "field": "", "modes": {"on": None, "off": None}}},
    "fp8": {"precision": {"weights": "fp8", "kv": "fp8"}},
    "claim": {
        "weights": {"existingClaim": "models", "subPath": "qwen"},
        "fetch": {"enabled": False},
        "cache": {"persistent": False},
    },
    "bare": {
        "serviceAccount": {"create": False}, "networkPolicy": {"enabled": False}, "test": {"enabled": False},
        "weights": {"keep": False, "storageClassName": ""}, "drain": {"preStopSeconds": 0}, "fetch": {"enabled": False},
    },
    "service-monitor": {"monitoring": {"serviceMonitor": True}, "podDisruptionBudget": {"enabled": True}},
    "traefik": {"ingress": {"enabled": True, "controller": "traefik", "host": "a.example.org", "tlsSecret": "t"}},
    "ca": {"ca": {"existingConfigMap": "authority"}},
}  # fmt: skip
