"""What `helm install` says last."""

import pytest

from tests.render.chart import CHART, NAMESPACE, as_yaml, helm, merged
from tests.render.chart_values import EVERYTHING, MANY, SETS, SGLANG

F = "qwen3-4b-selfhost-model"


def notes(values):
    words = ("--namespace", NAMESPACE, "--dry-run=client", "--values", "-")
    done = helm("install", "qwen3-4b", CHART, *words, stdin=as_yaml(values))
    assert done.returncode == 0, done.stderr
    return done.stdout.partition("\nNOTES:\n")[2]


@pytest.mark.parametrize("name", SETS)
def test_every_line_is_whole(name):
    said = notes(SETS[name])
    assert "<no value>" not in said
    assert "map[" not in said
    assert "\n\n\n" not in said
    assert said.startswith("Qwen/Qwen3-4B at ")


def test_the_key_is_made_and_read_without_standing_on_a_command_line():
    said = notes({})
    assert (
        "  openssl rand -hex 32 | tr -d '\\n' | kubectl create secret generic "
        f"{F}-api-key --namespace team --from-file=api-key=/dev/stdin\n"
    ) in said
    assert (
        f"  kubectl get secret {F}-api-key --namespace team -o go-template="
        '\'header = "Authorization: Bearer {{index .data "api-key" | base64decode}}"\' \\\n'
        "    | curl -sS -K - http://127.0.0.1:8000/v1/models\n"
    ) in said


def test_a_key_that_exists_is_not_made_again():
    said = notes(EVERYTHING)
    assert "openssl" not in said
    assert (
        'kubectl get secret keys --namespace team -o go-template=\'header = "Authorization: Bearer {{index .data "qwen"'
        in said
    )
    assert "and from outside: https://qwen.example.org/v1" in said


def test_nothing_is_said_of_a_key_where_there_is_none():
    said = notes(SGLANG)
    assert "secret" not in said.lower()
    assert "  curl -sS http://127.0.0.1:8000/v1/models\n" in said


@pytest.mark.parametrize(
    ("values", "words"),
    [
        ({}, "a client that sends nothing gets them (reasoning.mode on), in message.reasoning."),
        ({"reasoning": {"mode": "off"}}, "a client that sends nothing gets none (reasoning.mode off)."),
        (SETS["budget"], 'each request has to send {"thinking_token_budget":512}'),
        (SETS["no-reasoning"], "a client that sends nothing gets what the model does by itself."),
        ({}, f"kubectl delete pvc {F}-weights --namespace team"),
        ({"weights": {"keep": False}}, "`helm uninstall` deletes the weights too"),
        ({}, "it is away while that loads, up to 900 s."),
        (MANY, "An update replaces one replica after the other"),
        ({"rollout": {"surge": 1}, "weights": {"accessModes": ["ReadWriteMany"]}}, "on a card that has to be free."),
        (
            {"monitoring": {"podMonitor": True}},
            "Only pods of team may. For a Prometheus elsewhere set networkPolicy.namespaces",
        ),
        (SETS["traefik"], "The gateway: only pods of team may reach the engine."),
        (SETS["bare"], "There is no NetworkPolicy, so every pod of the cluster may use them."),
        ({}, "all but /v1, /v2, /inference and /cohere; /metrics and /invocations, which generates, are among them."),
        (SGLANG, "Paths without a key: all.\n"),
        ({}, "kubectl delete job --namespace team --selector app.kubernetes.io/component=fetch"),
        ({}, "-s templates/fetch.yaml | kubectl apply --server-side -f -\n"),
        ({}, "helm test qwen3-4b --namespace team --logs --timeout 600s"),
        ({}, "selfhost doctor --namespace team"),
        ({}, "--timeout 5400s"),
    ],
)
def test_what_a_reader_needs_next_is_said(values, words):
    assert words in notes(values)


def test_the_job_that_is_named_is_the_one_that_is_made():
    from tests.render.chart import one, rendered

    for values in ({}, merged({"fetch": {"endpoint": "https://hub.example.org"}})):
        assert f"kubectl logs job/{one(rendered(values), 'Job')['metadata']['name']} " in notes(values)
