"""Answers of vLLM and SGLang, as recorded, in one form."""

import pytest

from selfhost.smoke.checks.endings import stop_for
from selfhost.smoke.checks.garbage import holds
from selfhost.smoke.metrics import total
from selfhost.smoke.wire import Malformed, read_chat, read_stream


def chat(**message):
    return {"choices": [{"message": {"role": "assistant", **message}, "finish_reason": "length"}]}


@pytest.mark.parametrize(
    "message",
    [
        {"content": None, "reasoning": "step one"},  # vLLM
        {"content": "", "reasoning_content": "step one"},  # SGLang
        {"content": "\n", "reasoning": "step one", "reasoning_content": None},
    ],
)
def test_both_engines_say_exhausted_in_their_own_way(message):
    answer = read_chat(chat(**message))
    assert answer.exhausted
    assert answer.reasoning == "step one"


def test_an_answer_that_was_cut_after_its_thinking_is_not_exhausted():
    assert not read_chat(chat(content="9.8 is", reasoning="step")).exhausted


def test_a_body_without_choices_is_no_answer():
    for body in (None, {}, {"choices": []}, {"error": {"message": "no"}}, [1]):
        with pytest.raises(Malformed):
            read_chat(body)


def test_usage_of_both_engines_counts_thinking():
    vllm = {
        "prompt_tokens": 5,
        "completion_tokens": 7,
        "total_tokens": 12,
        "completion_tokens_details": {"reasoning_tokens": 4},
    }
    sglang = {"prompt_tokens": 5, "completion_tokens": 7, "total_tokens": 12, "reasoning_tokens": 4}
    for usage in (vllm, sglang):
        assert read_chat({**chat(content="x"), "usage": usage}).usage.reasoning == 4


FIRST = '{"choices":[{"index":0,"delta":{"role":"assistant","content":""},"finish_reason":null}]}'
WORD = '{"choices":[{"index":0,"delta":{"content":"hi"},"finish_reason":null}]}'
LAST = '{"choices":[{"index":0,"delta":{},"finish_reason":"stop"}]}'
USAGE = '{"choices":[],"usage":{"prompt_tokens":3,"total_tokens":4,"completion_tokens":1}}'
SSE = "text/event-stream; charset=utf-8"


def framing(*events, content_type=SSE):
    return read_stream(events, content_type=content_type, wants_usage=True).problems


def test_a_stream_as_vllm_sends_it_has_no_problem():
    assert framing(FIRST, WORD, LAST, USAGE, "[DONE]") == ()


@pytest.mark.parametrize(
    ("events", "problem"),
    [
        ((FIRST, WORD, LAST, USAGE), "the stream ended without [DONE]"),
        ((FIRST, WORD, LAST, "[DONE]"), "stream_options.include_usage was sent, and no chunk carries usage"),
        ((FIRST, WORD, USAGE, "[DONE]"), "0 chunks carry a finish_reason, expected one"),
        ((FIRST, WORD, LAST, LAST, USAGE, "[DONE]"), "2 chunks carry a finish_reason, expected one"),
        ((FIRST, LAST, WORD, USAGE, "[DONE]"), "text follows the chunk with the finish_reason"),
        ((FIRST, '{"choi', WORD, LAST, USAGE, "[DONE]"), 'a chunk is not JSON: {"choi'),
        ((FIRST, WORD, LAST, USAGE, "[DONE]", WORD), f"an event follows [DONE]: {WORD[:80]}"),
    ],
)
def test_each_breach_of_the_framing_is_named(events, problem):
    assert problem in framing(*events)


def test_the_stop_string_is_one_that_does_not_begin_the_text():
    assert stop_for(" seven, eight, nine, ten") == "n"  # occurs five times behind "se"
    assert stop_for("aaaa") == ""
    assert stop_for("") == ""


def test_a_word_counts_only_as_a_word_of_its_own():
    assert holds("It is 5.", "5")
    assert not holds("It is 25.", "5")
    assert holds("Blue!", "blue")
    assert not holds("a notice", "ice")


def test_running_requests_are_summed_over_parallel_engines():
    page = (
        "# HELP vllm:num_requests_running Number of requests.\n"
        'vllm:num_requests_running{engine="0",model_name="m"} 2.0\n'
        'vllm:num_requests_running{engine="1",model_name="m"} 1.0\n'
        'vllm:num_requests_running_other{engine="1"} 9.0\n'
    )
    assert total(page, ("vllm:num_requests_running",)) == 3
    assert total(page, ("sglang:num_running_reqs",)) is None
