"""Watches that break, expire, are refused: what is known afterwards is what the server has."""

import time

import pytest

from selfhost.runtimes.cluster import watch as room
from selfhost.runtimes.cluster.client import Cluster
from selfhost.runtimes.cluster.watch import Kind, Watch
from tests.fakes.kube_api import KubeApi
from tests.runtimes.conftest import until

MAPS = Kind(api_version="v1", kind="ConfigMap")
PODS = Kind(api_version="v1", kind="Pod")


@pytest.fixture
def api():
    with KubeApi() as api:
        yield api


@pytest.fixture
def cluster(api, tmp_path, monkeypatch):
    monkeypatch.setattr(room, "FIRST_S", 0.02)
    file = tmp_path / "kubeconfig"
    file.write_text(api.kubeconfig())
    return Cluster.connect(env={"KUBECONFIG": str(file)})


def put(api: KubeApi, name: str, **data: str) -> None:
    api.put({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name, "namespace": "models"}, "data": data})


def names(watch: Watch) -> set[str]:
    return {one["metadata"]["name"] for one in watch.objects()}


def test_what_comes_changes_and_goes_is_seen(api, cluster):
    put(api, "first", a="1")
    with Watch(cluster, (MAPS,)) as watch:
        until(lambda: watch.complete)
        assert names(watch) == {"first"}
        put(api, "second")
        put(api, "first", a="2")
        until(lambda: names(watch) == {"first", "second"})
        until(lambda: any(one.get("data") == {"a": "2"} for one in watch.objects()))
        api.drop("/api/v1/namespaces/models/configmaps/first")
        until(lambda: names(watch) == {"second"})
        assert watch.lost() == (0.0, "")


def test_a_watch_that_breaks_in_the_middle_of_a_line_is_taken_up_where_it_was(api, cluster):
    api.faults.drop_watches = 3
    with Watch(cluster, (MAPS,)) as watch:
        until(lambda: len(api.watches) >= 4)
        put(api, "late")
        until(lambda: names(watch) == {"late"})
    assert api.requests.count(("GET", "/api/v1/namespaces/models/configmaps")) >= 5


def test_a_version_that_is_too_old_is_listed_anew(api, cluster):
    api.faults.expire_watches = 1
    with Watch(cluster, (MAPS,)) as watch:
        until(lambda: watch.complete)
        put(api, "meanwhile")
        until(lambda: names(watch) == {"meanwhile"})


def test_what_may_not_be_watched_is_said_and_holds_nobody_up(api, cluster):
    api.faults.forbidden = {("watch", "pods"), ("list", "pods")}
    with Watch(cluster, (MAPS, PODS)) as watch:
        until(lambda: watch.complete)
        assert set(watch.refused()) == {PODS}


def test_a_kind_that_the_server_does_not_know_holds_nobody_up(cluster):
    unknown = Kind(api_version="example.org/v1", kind="Nothing")
    with Watch(cluster, (MAPS, unknown)) as watch:
        until(lambda: watch.complete)
        assert set(watch.refused()) == {unknown}


def test_a_server_that_went_away_is_lost_and_when_it_is_back_it_is_not(api, cluster):
    with Watch(cluster, (MAPS,)) as watch:
        until(lambda: watch.complete)
        api.faults.answers[("GET", "/configmaps")] = (503, {"message": "leader changed"})
        api._server.closing = True
        time.sleep(0.2)
        api._server.closing = False
        until(lambda: "leader changed" in watch.lost()[1])
        assert watch.lost()[0] > 0
        api.faults.answers.clear()
        until(lambda: watch.lost() == (0.0, ""))


def test_tries_come_further_and_further_apart(api, cluster, monkeypatch):
    monkeypatch.setattr(room, "FIRST_S", 0.1)
    api.faults.answers[("GET", "/configmaps")] = (503, {"message": "away"})
    with Watch(cluster, (MAPS,)) as watch:
        time.sleep(1.6)
        assert watch.lost()[0] > 0
    tries = api.requests.count(("GET", "/api/v1/namespaces/models/configmaps"))
    assert 3 <= tries <= 6  # 0.1 + 0.2 + 0.4 + 0.8 s
