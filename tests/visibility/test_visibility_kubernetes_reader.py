"""Kubernetes objects: where pods stand in every kind, what the API makes of their values, and templates."""

import json

import pytest

from selfhost.core.errors import InputError
from selfhost.shapes.workload import EnvSource, Workload
from selfhost.visibility.files import NO_FILES
from selfhost.visibility.readers.kubernetes import read
from selfhost.visibility.readers.kubernetes_mounts import quantity_bytes
from selfhost.visibility.sources import read_source

SPEC = "{containers: [{name: c, image: x}]}"


def workloads(text: str) -> tuple[Workload, ...]:
    return read(text, path="x.yaml", files=NO_FILES)


def pod(spec: str) -> Workload:
    return workloads(f"apiVersion: v1\nkind: Pod\nmetadata: {{name: p}}\nspec: {spec}\n")[0]


@pytest.mark.parametrize(
    ("kind", "body", "count"),
    [
        ("Pod", "spec: S", 1),
        ("Deployment", "spec: {template: {spec: S}}", 1),
        ("StatefulSet", "spec: {template: {spec: S}}", 1),
        ("DaemonSet", "spec: {template: {spec: S}}", 1),
        ("ReplicaSet", "spec: {template: {spec: S}}", 1),
        ("Job", "spec: {template: {spec: S}}", 1),
        ("CronJob", "spec: {jobTemplate: {spec: {template: {spec: S}}}}", 1),
        ("LeaderWorkerSet", "spec: {leaderWorkerTemplate: {leaderTemplate: {spec: S}, workerTemplate: {spec: S}}}", 2),
        (
            "RayCluster",
            "spec: {headGroupSpec: {template: {spec: S}}, workerGroupSpecs: [{template: {spec: S}}]}",
            2,
        ),
        ("RayService", "spec: {rayClusterConfig: {headGroupSpec: {template: {spec: S}}}}", 1),
        ("RayJob", "spec: {rayClusterSpec: {headGroupSpec: {template: {spec: S}}}}", 1),
        ("InferenceService", "spec: {predictor: S}", 1),
        (
            "InferenceService",
            "spec: {predictor: {model: {modelFormat: {name: huggingface}, args: [a]}, workerSpec: S}}",
            2,
        ),
        ("LLMInferenceService", "spec: {template: S, prefill: {template: S}}", 2),
        ("ClusterServingRuntime", "spec: S", 1),
        ("Service", "spec: {template: {spec: S}}", 1),
        ("JobSet", "spec: {replicatedJobs: [{template: {spec: {template: {spec: S}}}}]}", 1),
        (
            "PyTorchJob",
            "spec: {pytorchReplicaSpecs: {Master: {template: {spec: S}}, Worker: {template: {spec: S}}}}",
            2,
        ),
        ("Service", "spec: {ports: [{port: 80}]}", 0),
        ("ConfigMap", "data: {a: b}", 0),
        ("Fancy", "spec: {template: {spec: S}}", 0),
        ("Pod", "spec: null", 0),
        ("Pod", "spec: [1]", 0),
        ("Pod", "spec: {containers: [1, null]}", 0),
        ("RayCluster", "spec: {workerGroupSpecs: 3}", 0),
    ],
)
def test_pods_are_found_in_every_kind(kind: str, body: str, count: int) -> None:
    text = f"apiVersion: v1\nkind: {kind}\nmetadata: {{name: n}}\n" + body.replace(": S", f": {SPEC}")
    found = workloads(f"{text}\n")
    assert len(found) == count
    assert all(workload.pod and (workload.pod.kind, workload.pod.name) == (kind, "n") for workload in found)


def test_lists_and_api_answers_hold_objects() -> None:
    item = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "a"}, "spec": {"containers": [{"name": "c"}]}}
    answer = json.dumps({"apiVersion": "v1", "kind": "PodList", "items": [item, item]}, indent=4)
    found = read_source(answer, path="x.json", files=NO_FILES)
    assert [workload.label for workload in found] == ["container c of Pod/a"] * 2
    assert found[1].at["name"].line > found[0].at["name"].line > 1


@pytest.mark.parametrize(
    ("text", "count"),
    [
        # kubernetes.io/docs/reference/kubernetes-api/common-definitions/quantity
        ("8Gi", 8 * 2**30),
        ("20G", 20 * 10**9),
        ("128974848", 128974848),
        ("129e6", 129_000_000),
        ("129M", 129_000_000),
        ("123Mi", 123 * 2**20),
        ("0.5Gi", 2**29),
        ("1E", 10**18),
        ("100k", 100_000),
        ("1500m", 1),
        ("", None),
        ("big", None),
        ("1e99", None),
        ("-1", None),
        ("1Xi", None),
    ],
)
def test_quantities_become_bytes(text: str, count: int | None) -> None:
    assert quantity_bytes(text) == count


def test_references_to_variables_are_filled_in_as_the_kubelet_does() -> None:
    found = pod(
        "{containers: [{name: c, env: [{name: A, value: '1'}, {name: B, value: 'x$(A)$(LATER)'},"
        " {name: C, value: '$$(A)'}, {name: D, value: '$(A)y'}, {name: E}, {name: LATER, value: z}],"
        " args: ['$(A)', '$(NO)', '$$(A)']}]}"
    )
    assert found.env == {"A": "1", "C": "$(A)", "D": "1y", "E": "", "LATER": "z"}
    assert found.env_sources == {"B": EnvSource.REFERENCE}
    assert found.argv == ("1", "$(NO)", "$(A)")


def test_a_later_variable_replaces_one_out_of_another_object() -> None:
    found = pod(
        "{containers: [{name: c, env: [{name: A, valueFrom: {fieldRef: {fieldPath: status.podIP}}},"
        " {name: A, value: x}, {name: B, value: y}, {name: B, valueFrom: {secretKeyRef: {name: s, key: k}}}]}]}"
    )
    assert found.env == {"A": "x"}
    assert found.env_sources == {"B": EnvSource.REFERENCE}


@pytest.mark.parametrize(
    ("spec", "field", "value"),
    [
        ("{hostIPC: true, hostPID: yes, hostNetwork: 'true', C}", "ipc", "host"),
        ("{hostIPC: no, C}", "ipc", ""),
        ("{hostPID: yes, C}", "pid", "host"),
        ("{hostNetwork: on, C}", "network", "host"),
        ("{securityContext: {runAsUser: 0}, C}", "user", "0"),
    ],
)
def test_words_of_the_pod_hold_for_its_containers(spec: str, field: str, value: str) -> None:
    assert getattr(pod(spec.replace("C}", "containers: [{name: c}]}")), field) == value


def test_amounts_stay_the_texts_they_are() -> None:
    found = pod("{containers: [{name: c, resources: {limits: {nvidia.com/gpu: 0.5, cpu: 100m, memory: 0755}}}]}")
    assert found.pod
    assert found.pod.limits == {"nvidia.com/gpu": "0.5", "cpu": "100m", "memory": "0755"}


def test_references_made_to_exhaust_their_reader_stay_unknown() -> None:
    doubled = ", ".join(f"{{name: A{n}, value: '$(A{n - 1})$(A{n - 1})'}}" for n in range(1, 64))
    found = pod(f"{{containers: [{{name: c, env: [{{name: A0, value: xx}}, {doubled}], args: {['$(A12)'] * 5000}}}]}}")
    assert found.env["A3"] == "x" * 16
    assert found.env_sources["A63"] is EnvSource.REFERENCE
    assert sum(map(len, found.argv)) < 2**21
    assert found.argv[-1] == "$(A12)"


TEMPLATES = [
    "spec:\n  image: {{ .Values.image }}\n",
    'spec:\n  image: "{{ .Values.image.name }}:{{ .Chart.AppVersion }}"\n',
    "{{- if .Values.gpu }}\nspec: {}\n{{- end }}\n",
    'metadata:\n  labels: {{- include "x.labels" . | nindent 4 }}\n',
    "metadata: {name: {{ .Release.Name }}}\n",
]


@pytest.mark.parametrize("body", TEMPLATES)
def test_a_helm_template_is_named_with_the_command_that_renders_it(body: str) -> None:
    with pytest.raises(InputError) as caught:
        read_source(f"apiVersion: v1\nkind: Pod\n{body}", path="charts/llm/templates/pod.yaml", files=NO_FILES)
    error = caught.value
    assert error.place
    assert (error.id, error.place.line) == (
        "CF059",
        next(n for n, line in enumerate(body.split("\n"), 3) if "{{" in line),
    )
    assert "helm template charts/llm -f values.yaml | selfhost lint -" in error.fix[0]


@pytest.mark.parametrize(
    "data",
    [
        "chat: |\n    {{- if .System }}{{ .Prompt }}{{ end }}",
        "x: '{% for m in messages %}{{ m }}{% endfor %}'",
        "# {{ .Values.x }}",
    ],
)
def test_other_templates_inside_of_texts_are_none_of_helm(data: str) -> None:
    assert workloads(f"apiVersion: v1\nkind: ConfigMap\ndata:\n  {data}\n") == ()


def test_what_helm_prints_is_read_at_its_lines() -> None:
    text = f"---\n# Source: llm/templates/pod.yaml\napiVersion: v1\nkind: Pod\nmetadata: {{name: p}}\nspec: {SPEC}\n"
    (found,) = read_source(text, path="stdin", files=NO_FILES)
    assert (found.image, found.at["image"].line) == ("x", 6)


def test_a_template_of_another_tool_is_named_so() -> None:
    with pytest.raises(InputError) as caught:
        workloads("kind: Pod\nimage: {{ image }}\n")
    assert (caught.value.id, caught.value.fix) == ("CF059", ("render it first",))
