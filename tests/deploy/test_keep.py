"""A checked container is to start again by itself: what refuses it is a warning, and a later `up` tries again."""

from types import SimpleNamespace

import pytest

from selfhost.core.errors import EnvironmentMissing
from selfhost.deploy import up
from selfhost.deploy.journal import Journal


class Engine:
    """A runtime that keeps, does not know how to, or refuses."""

    info = SimpleNamespace(name="docker")

    def __init__(self, *answers):
        self.answers = list(answers)

    def keep(self, _name, _policy):
        answer = self.answers.pop(0)
        if isinstance(answer, Exception):
            raise answer
        return answer


@pytest.fixture
def run(tmp_path, monkeypatch):
    monkeypatch.setattr(up, "write_checked", lambda _: "unless-stopped")
    told = []
    plan = SimpleNamespace(name="it", container=SimpleNamespace(restart_checked="unless-stopped"))
    made = SimpleNamespace(
        plan=plan, digest="d", journal=Journal(tmp_path / "journal.jsonl"), told=told,
        tell=lambda _step, state, text: told.append((state, text)),
    )  # fmt: skip
    made.journal.write("apply", "done", digest="d")
    return made


FULL = EnvironmentMissing("no space left", id="RT070")


def test_a_refusal_after_a_checked_start_is_a_warning_and_is_tried_again(run):
    run.runtime = Engine(FULL, True)
    up._keep(run)
    assert [state for state, _ in run.told] == ["warning"]
    assert "no space left" in run.told[0][1]
    assert not up._is_kept(run)
    up._keep(run)
    assert up._is_kept(run)
    assert len(run.told) == 1


def test_a_runtime_that_cannot_is_asked_once_a_start(run):
    run.runtime = Engine(False)
    up._keep(run)
    assert up._is_kept(run)


def test_a_new_start_has_to_be_kept_anew(run):
    run.runtime = Engine(True)
    up._keep(run)
    run.journal.write("apply", "done", digest="d")
    assert not up._is_kept(run)


@pytest.mark.parametrize("container", [None, SimpleNamespace(restart_checked="no")])
def test_nothing_is_to_be_kept_of_a_process_or_on_unified_memory(run, container):
    run.plan.container = container
    assert up._is_kept(run)
