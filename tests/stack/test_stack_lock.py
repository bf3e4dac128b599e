"""selfhost.lock: the same is the same, what must not differ stops, what may differ is named with its reason."""

import json
from dataclasses import replace

import pytest

from selfhost.core.errors import EnvironmentMissing, InputError
from selfhost.shapes.service import Service
from selfhost.stack.differences import differences
from selfhost.stack.entry import Entry, LockedFile, LockedHost, LockedImage
from selfhost.stack.lock import from_text, to_text
from selfhost.stack.locked import check_locked, entry_of, pinned

DIGEST = "sha256:" + "a" * 64
COMMIT = "0123456789abcdef0123456789abcdef01234567"
ENTRY = Entry(
    runtime="docker", engine="vllm", engine_version="0.33.0",
    image=LockedImage(reference="vllm/vllm-openai:v0.33.0", digest=DIGEST, platform="linux/amd64"),
    model="Qwen/Qwen3-4B", revision=COMMIT,
    files=(LockedFile(path="model.safetensors", size=7, sha256="b" * 64),),
    reasoning="off", weights_precision="fp8", kv_precision="bf16", context=32_000, concurrency=8, devices=1,
    plan_digest="c" * 64,
    host=LockedHost(driver="NVIDIA 580.95.05", cuda="13.0", container_engine="docker 28.1.1",
                    cards={"NVIDIA GeForce RTX 4090": 1}),
    selfhost="0.1.0",
)  # fmt: skip


def test_a_lock_comes_back_as_it_was_and_has_one_form():
    text = to_text({"b": ENTRY, "a": replace(ENTRY, image=None, libraries={"torch": "2.9"})})
    back = from_text(text, path="selfhost.lock")
    assert back["b"] == ENTRY
    assert text == to_text(dict(reversed(back.items())))
    assert json.loads(text)["schema"] == "selfhost.stack-lock/1"


@pytest.mark.parametrize(
    ("text", "id", "words"),
    [
        ("", "CF023", "no JSON"),
        ("{", "CF023", "no JSON"),
        ("[" * 100_000, "CF023", "no JSON"),
        ("[]", "CF023", "no `schema`"),
        ("{}", "CF023", "no `schema`"),
        ('{"schema": "selfhost.lock/1"}', "CF023", "selfhost.lock/1"),
        ('{"schema": "selfhost.stack-lock/2", "services": {}}', "CF024", "newer selfhost"),
        ('{"schema": "selfhost.stack-lock/1"}', "CF023", "no `services`"),
        ('{"schema": "selfhost.stack-lock/1", "services": {}, "more": 1}', "CF023", "`more`"),
        ('{"schema": "selfhost.stack-lock/1", "services": {"a": {"context": "x"}}}', "CF023", "services.a.context"),
        ('{"schema": "selfhost.stack-lock/1", "services": {"a": {"mmodel": "x"}}}', "CF023", "services.a.mmodel"),
        ('{"schema": "selfhost.stack-lock/1", "services": {"a": {"host": {"x": 1}}}}', "CF023", "services.a.host.x"),
        ('{"schema": "selfhost.stack-lock/1", "services": {"a": 3}}', "CF023", "services.a"),
        ('{"schema": "selfhost.stack-lock/1", "services": {"a": {"model": "\\ud800"}}}', "CF023", "services.a"),
    ],
)
def test_damage_and_other_forms_are_said_in_words(text, id, words):
    with pytest.raises(InputError) as caught:
        from_text(text, path="selfhost.lock")
    assert caught.value.id == id
    assert words in f"{caught.value.what} {caught.value.why}"


def test_the_same_has_no_differences():
    assert check_locked(ENTRY, ENTRY, name="chat") == ()


@pytest.mark.parametrize(
    ("change", "field", "error"),
    [
        ({"engine_version": "0.34.0"}, "engine version", InputError),
        ({"revision": "f" * 40}, "revision", InputError),
        ({"context": 16_000}, "context", InputError),
        ({"reasoning": "on"}, "reasoning", InputError),
        ({"image": replace(ENTRY.image, digest="sha256:" + "d" * 64)}, "image digest", EnvironmentMissing),
        ({"image": replace(ENTRY.image, platform="linux/arm64")}, "platform", EnvironmentMissing),
        ({"files": (replace(ENTRY.files[0], sha256="e" * 64),)}, "file model.safetensors", EnvironmentMissing),
        ({"files": (replace(ENTRY.files[0], path="other"),)}, "file model.safetensors", EnvironmentMissing),
    ],
)
def test_what_must_not_differ_stops(change, field, error):
    with pytest.raises(error) as caught:
        check_locked(ENTRY, replace(ENTRY, **change), name="chat")
    assert caught.value.id == "CF025"
    assert field in caught.value.what
    assert caught.value.what.startswith("`chat`: ")


def test_all_that_differs_is_listed():
    with pytest.raises(InputError) as caught:
        check_locked(ENTRY, replace(ENTRY, context=1, reasoning="on", model="x/y"), name="chat")
    said = caught.value.what + " ".join(caught.value.fix)
    assert "3 things" in said
    for words in ("model: Qwen/Qwen3-4B is locked, x/y is here", "reasoning: off is locked, on is here", "context"):
        assert words in said


def test_the_machine_may_differ_and_says_why():
    other = replace(
        ENTRY, host=replace(ENTRY.host, driver="NVIDIA 590.1", cards={"NVIDIA H100": 2}), plan_digest="d" * 64
    )
    found = {one.field: one for one in check_locked(ENTRY, other, name="chat")}
    assert set(found) == {"driver", "cards", "plan digest"}
    assert not any(one.serious for one in found.values())
    assert found["cards"].now == "2 × NVIDIA H100"
    assert "may differ" in found["driver"].why


def test_what_is_not_known_yet_is_not_compared():
    before = replace(ENTRY, image=None, files=(), plan_digest="", host=LockedHost())
    assert differences(ENTRY, before) == ()


def test_libraries_of_a_process_are_held():
    one = replace(ENTRY, image=None, runtime="process", libraries={"torch": "2.9.0", "numpy": "2.3"})
    with pytest.raises(EnvironmentMissing, match=r"library torch: 2\.9\.0 is locked, 2\.9\.1 is here"):
        check_locked(one, replace(one, libraries={"torch": "2.9.1", "numpy": "2.3"}), name="chat")


def test_a_service_that_is_not_locked_has_a_near_name():
    with pytest.raises(InputError) as caught:
        entry_of({"chat": ENTRY}, "chatt", path="selfhost.lock")
    assert (caught.value.id, caught.value.fix[0]) == ("CF026", "perhaps `chat`")


def test_a_pinned_service_asks_for_what_was_locked():
    found = pinned(Service(model="qwen3-4b@main", name="chat", engine="vllm"), ENTRY)
    assert (found.model, found.engine) == (f"qwen3-4b@{COMMIT}", "vllm@0.33.0")
    assert found.image == f"vllm/vllm-openai:v0.33.0@{DIGEST}"
    folder = Service(model="/models/mine@home", name="chat")
    assert pinned(folder, replace(ENTRY, revision="", image=None)).model == "/models/mine@home"
