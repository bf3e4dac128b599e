"""What README.txt and the comments of files for a cluster tell a reader, and in which order."""

import os
import shlex
import subprocess
from dataclasses import replace

import pytest

from selfhost.models.catalog import by_alias
from selfhost.models.listed import listed
from selfhost.render.cluster_words import unpinned
from selfhost.render.targets import render
from selfhost.shapes.cluster import ClusterAsk
from selfhost.shapes.host import Known
from selfhost.shapes.place import Place
from tests.plan.test_plan_cluster import plan_in

PLACE = Place(folder="/b", key_file="", env_file="", python="")
FETCH = "app.kubernetes.io/instance=it,app.kubernetes.io/component=fetch"
DIGEST = "sha256:" + "a" * 64
CLUSTER = ("helm", "kubernetes")


def files(target, host="rtx4090", **wish):
    return render(target, plan_in(host, **wish), PLACE).files


def readme(target, host="rtx4090", **wish):
    return files(target, host, **wish)["README.txt"]


@pytest.mark.parametrize("target", CLUSTER)
def test_a_job_that_failed_can_be_run_again(target):
    assert f"\n  kubectl delete job -l {FETCH}\n" in readme(target)


@pytest.mark.parametrize(
    ("target", "commands"),
    [
        ("helm", ["helm template it ", f"kubectl wait --for=condition=complete --timeout=3000s job -l {FETCH}",
                  "helm upgrade --install it ./selfhost-model -f values.yaml --take-ownership --cleanup-on-fail"]),
        ("kubernetes", [f"kubectl apply --server-side -f manifests.yaml -l {FETCH}",
                        f"kubectl wait --for=condition=complete --timeout=3000s job -l {FETCH}",
                        "kubectl apply --server-side -f manifests.yaml\n"]),
    ],
)  # fmt: skip
def test_another_revision_is_fetched_before_the_old_pod_goes(target, commands):
    after = readme(target).partition("For another revision or image")[2]
    places = [after.index(f"\n  {command}") for command in commands]
    assert places == sorted(places)


def test_helm_takes_away_what_a_failed_upgrade_made_and_waits_for_the_test_as_long_as_it_may_take():
    said = readme("helm")
    lines = [line for line in said.splitlines() if line.startswith("  helm upgrade")]
    assert len(lines) == 3
    assert all("--cleanup-on-fail" in line for line in lines)
    assert "  helm test it --logs --timeout 600s\n" in said
    assert "in a second terminal" in said
    assert "--force-conflicts" in said


@pytest.mark.parametrize("target", CLUSTER)
def test_the_key_is_made_once_and_goes_when_it_is_told_to(target, tmp_path):
    said = readme(target)
    (make,) = [line.strip() for line in said.splitlines() if line.startswith("  [ -e key ]")]
    subprocess.run(["bash", "-c", make], cwd=tmp_path, check=True, env=os.environ, timeout=60)
    first = (tmp_path / "key").read_text()
    subprocess.run(["bash", "-c", make], cwd=tmp_path, check=True, env=os.environ, timeout=60)
    assert (tmp_path / "key").read_text() == first  # the Secret holds it
    assert first.startswith("sk-selfhost-")
    assert (tmp_path / "key").stat().st_mode & 0o077 == 0
    assert "key.header" not in said
    assert "  kubectl delete secret it-api-key\n" in said
    other = readme(target, cluster=ClusterAsk(key_secret="chat-key"))
    assert "openssl" not in other
    assert "create secret generic chat-key" not in other
    assert "delete secret" not in other


@pytest.mark.parametrize("target", CLUSTER)
def test_a_first_question_waits_until_the_port_is_forwarded(target):
    asked = readme(target).partition("Ask it something")[2]
    words = shlex.split(asked.partition("printf ")[2].partition("\n\n")[0].replace("\\\n", " "))
    assert words[words.index("--retry") :][:3] == ["--retry", "10", "--retry-connrefused"]
    assert words[words.index("-K") + 1] == "-"


@pytest.mark.parametrize("target", CLUSTER)
def test_paths_without_a_key_are_named(target):
    said = " ".join(readme(target).split())
    assert (
        "The key is asked for below /v1, /v2, /inference and /cohere. Other paths ask for none, /invocations among"
        in said
    )
    assert "For a Prometheus in another namespace" in said
    assert "There is no key: whoever reaches the port may use it" in " ".join(
        readme(target, "h100", engine="sglang").split()
    )


@pytest.mark.parametrize("target", CLUSTER)
def test_an_image_that_nobody_looked_for_is_looked_for_first(target):
    look = "  docker manifest inspect docker.io/vllm/vllm-openai:v0.33.0\n"
    assert readme(target).index(look) < readme(target).index("create secret")
    pinned = readme(target, image=f"vllm/vllm-openai:v0.33.0@{DIGEST}")
    assert "manifest inspect" not in pinned
    locked = render(target, plan_in("rtx4090"), replace(PLACE, image_digest=DIGEST)).files["README.txt"]
    assert "manifest inspect" not in locked


@pytest.mark.parametrize("target", CLUSTER)
def test_where_restricted_refuses_there_is_something_to_try(target):
    said = readme(target, "amd-mi300x")
    assert "runAsNonRoot: true, runAsUser: 2000" in said
    assert "supplementalGroups: [GID]" in said
    assert "supplementalGroups" not in readme(target, "h100", engine="sglang")
    assert "restricted" not in readme(target)


@pytest.mark.parametrize("target", CLUSTER)
def test_weights_that_are_there_have_no_job_to_speak_of(target):
    said = readme(target, cluster=ClusterAsk(existing_claim="models"))
    assert "component=fetch" not in said
    assert "delete pvc" not in said


def test_manifests_say_what_the_values_explain():
    text = " ".join(files("kubernetes")["manifests.yaml"].replace("#", " ").split())
    assert "the cluster was not looked at: k3s, RKE2 and k0s need `runtimeClassName: nvidia`" in text
    assert "precision is FP8 per channel, which changes what the model computes" in text
    assert "as published: `--precision bf16`" in text
    assert text.count("it asks nobody") == 1
    assert text.count("it asks the hub") == 1
    assert "component: test" not in text


def test_what_the_files_leave_open_is_said_when_they_are_written():
    open_ = plan_in("rtx4090")
    image, branch = unpinned(open_, open_.cluster)
    assert image == "nobody looked whether docker.io/vllm/vllm-openai:v0.33.0 exists"
    assert "selfhost lock" in branch
    model = replace(listed(by_alias("qwen3-4b")), revision=Known("f00d" * 10, "test"))
    closed = plan_in("rtx4090", model=model, image=f"vllm/vllm-openai:v0.33.0@{DIGEST}")
    assert unpinned(closed, closed.cluster) == ()
