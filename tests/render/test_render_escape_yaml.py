"""A text is that text for a YAML 1.1 reader too, alone, in a map and in a list of one line."""

import yaml as pyyaml
from hypothesis import given, settings

from selfhost.render import escape
from selfhost.render.escape import holds_in_unit, systemd_value, systemd_word
from selfhost.visibility.readers.unit import entries
from tests.fakes.workloads import ODD, TEXT


def loaded(text: str) -> tuple[object, object, object]:
    said = escape.yaml(text)
    return (
        pyyaml.safe_load(f"{{k: 0, v: {said}}}")["v"],
        pyyaml.safe_load(f"[{said}, {said},  # why\n]")[0],
        pyyaml.safe_load(f"k:\n  - {said}  # why\n")["k"][0],
    )


def test_odd_words_stay_themselves() -> None:
    for text in ODD:
        assert loaded(text) == (text, text, text), text


@settings(max_examples=150, deadline=None)
@given(TEXT)
def test_any_text_stays_itself(text: str) -> None:
    assert loaded(text) == (text, text, text)


def test_plain_words_stay_plain_and_json_is_readable() -> None:
    assert escape.yaml("--max-model-len") == "--max-model-len"
    assert escape.yaml("vllm/vllm-openai:v0.33.0") == "vllm/vllm-openai:v0.33.0"
    assert escape.yaml('{"a":true}') == """'{"a":true}'"""
    assert escape.yaml("8000") == '"8000"'
    assert escape.compose("pa$word") == '"pa$$word"'


def unit(line: str) -> list[str]:
    return [word.text for word in entries(f"[X]\nK={line}\n")[0].words()]


@settings(max_examples=150, deadline=None)
@given(TEXT)
def test_any_text_is_one_word_of_a_unit(text: str) -> None:
    assert unit(f"a {systemd_word(text)} b") == ["a", text.replace("$", "$$"), "b"]
    if holds_in_unit(text):
        assert unit(systemd_value(text)) == [text.replace("$", "$$")]
