"""Which file, which services; and cards that only the machine can tell apart."""

import pytest

from selfhost.core.errors import InputError
from selfhost.shapes.service import Service
from selfhost.stack.find import file_of, required, select
from selfhost.stack.load import load
from selfhost.stack.sharing import refuse_overlap
from selfhost.stack.starter import starter

STACK = load("version: 1\nservices: {chat: {model: m}, embed: {model: n}}", path="selfhost.yaml")


def test_the_file_of_the_folder_is_taken_when_nothing_else_is_named():
    assert file_of(None, model=None, here=["selfhost.yaml"]) == "selfhost.yaml"
    assert file_of(None, model="m", here=["selfhost.yaml"]) is None
    assert file_of("x.yaml", model="m", here=[]) == "x.yaml"
    assert file_of(None, model=None, here=["selfhost.yml"]) is None
    with pytest.raises(InputError) as caught:
        required(None, here=["selfhost.yml"])
    assert caught.value.fix[0] == "perhaps this one:\n-f selfhost.yml"


def test_services_come_in_the_order_of_the_file():
    assert [one.name for one in select(STACK, ["embed", "chat"])] == ["chat", "embed"]
    assert select(STACK, []) == STACK.services


def test_an_unknown_service_has_a_near_name():
    with pytest.raises(InputError) as caught:
        select(STACK, ["chta"])
    assert (caught.value.id, caught.value.fix) == ("CF003", ("perhaps `chat`",))


def test_a_number_and_a_uuid_may_be_one_card():
    pair = (
        Service(model="m", name="a", device="0", share=0.6, origins={"share": "selfhost.yaml:5 share"}),
        Service(model="m", name="b", device="GPU-1", share=0.5, origins={"share": "selfhost.yaml:9 share"}),
    )
    refuse_overlap(pair, {"a": ["GPU-11112222"], "b": ["GPU-33334444"]})
    with pytest.raises(InputError) as caught:
        refuse_overlap(pair, {"a": ["GPU-11112222"], "b": ["GPU-11112222"]})
    assert (caught.value.id, caught.value.place.line) == ("CF007", 9)
    assert "0.6 (a) + 0.5 (b) = 1.1" in caught.value.what


def test_a_first_file_for_a_machine_with_cards_names_them():
    cards = [("GPU-6f1e2d3c", "NVIDIA GeForce RTX 4090, 23.5 GiB"), ("GPU-77777777", "another")]
    text = starter(model="qwen3-14b", reason="the largest\nthat fits", cards=cards)
    (service,) = load(text, path="selfhost.yaml").services
    assert (service.model, service.device) == ("qwen3-14b", "GPU-6f1e2d3c")
    assert "# GPU-77777777: another" in text
