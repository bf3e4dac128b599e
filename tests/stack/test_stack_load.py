"""selfhost.yaml as people write it: what it asks for, and everything that is wrong with it, with its lines."""

import pytest

from selfhost.core.errors import InputError
from selfhost.shapes.service import Envelope, ReasoningAsk, ReasoningMode
from selfhost.stack.load import decoded, load

WHOLE = """\
version: 1
defaults:
  runtime: docker
  engine: vllm@0.33.0
services:
  chat:
    model: qwen3-4b
    devices: [GPU-6f1e2233]
    share: 0.45
    port: 8001
    context: 32k
    reasoning: {mode: budget, budget_tokens: 2048}
    precision: {weights: fp8, kv: auto}
    kv_skip_layers: [0, 1]
    engine_args: [--max-num-batched-tokens, 4096]
    engine_env: {NAME: 1.10}
    media_domains: [images.example]
    context_ceiling: 4096
    trust_remote_code: true
    envelope: {isl: 2000, osl: 500, concurrency: 8, cache: cold, ttft: {p: 0.05, s: 2}, price_per_hour: 1.2}
  embed:
    model: qwen3-1.7b
    engine: sglang
    devices: cpu
    reasoning: off
    envelope: {isl: 2000, osl: 500, concurrency: 4}
"""


def one(text):
    (service,) = load(f"version: 1\nservices:\n  a: {text}\n", path="selfhost.yaml").services
    return service


def refused(text):
    with pytest.raises(InputError) as caught:
        load(text, path="selfhost.yaml")
    return caught.value


def test_every_key_arrives_and_knows_its_line():
    chat, embed = load(WHOLE, path="selfhost.yaml").services
    assert (chat.model, chat.name, chat.device, chat.port, chat.context) == (
        "qwen3-4b", "chat", "GPU-6f1e2233", 8001, 32_000,
    )  # fmt: skip
    assert (chat.share, chat.precision, chat.kv_cache, chat.kv_skip_layers) == (0.45, "fp8", "auto", ("0", "1"))
    assert chat.reasoning == ReasoningAsk(mode=ReasoningMode.BUDGET, budget_tokens=2048)
    assert (chat.engine_args, chat.engine_env) == (("--max-num-batched-tokens", "4096"), {"NAME": "1.10"})
    assert (chat.runtime, chat.engine, chat.trust_remote_code) == ("docker", "vllm@0.33.0", True)
    assert (chat.media_domains, chat.context_ceiling) == (("images.example",), 4096)
    assert chat.envelope == Envelope(
        isl=2000, osl=500, concurrency=8, cache="cold", ttft_s=2.0, ttft_share=0.05, price_per_hour=1.2
    )
    assert chat.origins["context"] == "selfhost.yaml:11 context"
    assert chat.origins["runtime"] == "selfhost.yaml:3 runtime"
    assert chat.origins["kv_cache"] == "selfhost.yaml:13 precision.kv"
    assert (embed.engine, embed.device) == ("sglang", "cpu")


def test_an_envelope_gives_context_and_concurrency_that_nobody_asked_for():
    embed = load(WHOLE, path="selfhost.yaml").services[1]
    assert (embed.context, embed.concurrency) == (2500, 4)
    assert embed.origins["context"] == "selfhost.yaml:26 envelope.isl + osl"


@pytest.mark.parametrize(
    ("written", "mode"),
    [
        ("off", "off"), ("false", "off"), ("on", "on"), ("true", "on"), ("budget=2k", "budget=2000"),
        ("effort=low", "effort=low"), ("{mode: off}", "off"), ("{mode: false}", "off"),
        ("{mode: effort, effort: high}", "effort=high"),
    ],
)  # fmt: skip
def test_reasoning_has_a_short_form_and_survives_yaml_of_old(written, mode):
    assert str(one(f"{{model: m, reasoning: {written}}}").reasoning) == mode


@pytest.mark.parametrize(
    ("written", "device"),
    [("cpu", "cpu"), ("auto", None), ("0", "0"), ("[0, 1]", "0,1"), ('"0,1"', "0,1"), ("[GPU-aa, 1]", "GPU-aa,1")],
)  # fmt: skip
def test_devices_are_written_in_many_ways(written, device):
    assert one(f"{{model: m, devices: {written}}}").device == device


@pytest.mark.parametrize(
    ("written", "tokens"), [("32000", 32_000), ("32k", 32_000), ("32K", 32_768), ("1.5m", 1_500_000), ('"4096"', 4096)]
)
def test_numbers_are_short_as_the_engines_read_them(written, tokens):
    assert one(f"{{model: m, context: {written}}}").context == tokens


def test_flags_may_stand_in_a_map():
    args = one("{model: m, engine_args: {--max-num-seqs: 16, enable_x: true, c: {a: false}, l: [0, 1.10]}}").engine_args
    assert args == ("--max-num-seqs", "16", "--enable-x", "--c", '{"a": false}', "--l", "0", "1.10")


def test_anchors_and_keys_of_ones_own_are_taken():
    stack = load("version: 1\nx-a: &a {model: m}\nservices: {b: *a, c: {<<: *a, port: 8001}}\n", path="f")
    assert [(one.name, one.model, one.port) for one in stack.services] == [("b", "m", None), ("c", "m", 8001)]


def test_an_unknown_key_names_its_line_and_the_nearest_one():
    error = refused("version: 1\nservices:\n  chat:\n    model: m\n    xreasoning: off\n")
    assert (error.id, error.what, error.place.line) == ("CF002", "unknown key `xreasoning` in service `chat`", 5)
    assert error.evidence == "5 |     xreasoning: off"
    assert error.fix == ("perhaps `reasoning`",)


def test_a_port_as_compose_writes_it_is_refused_with_the_number_to_write():
    error = refused('version: 1\nservices:\n  chat:\n    model: m\n    port: "8000:8000"\n')
    assert (error.id, error.place.line) == ("CF005", 5)
    assert error.what.startswith('`port` is "8000:8000", expected ')
    assert error.fix[0].endswith("port: 8000")


@pytest.mark.parametrize(
    ("service", "id", "words"),
    [
        ("{}", "CF004", "names no model"),
        ("{model: m, reasoning: {mode: budget}}", "CF006", "says no number of tokens"),
        ("{model: m, reasoning: {mode: effort}}", "CF006", "says no level"),
        ("{model: m, reasoning: {mode: off, budget_tokens: 9}}", "CF006", "beside mode `off`"),
        ("{model: m, reasoning: {mode: on, effort: low}}", "CF006", "beside mode `on`"),
        ("{model: m, context: 2k, reasoning: budget=2k}", "CF006", "no room"),
        ("{model: m, context: 2k, envelope: {isl: 2000, osl: 500}}", "CF006", "2,000 in + 500 out = 2,500"),
        ("{model: m, devices: cpu, share: 0.5}", "CF006", "runs on the CPU"),
        ("{model: m, runtime: process, image: x}", "CF006", "for a container"),
        ("{model: m, share: 1.2}", "CF005", "expected 1 or less"),
        ("{model: m, share: .nan}", "CF005", "`share` is .nan"),
        ("{model: m, port: 0}", "CF005", "expected 1 or more"),
        ("{model: m, context: }", "CF005", "is empty"),
        ("{model: m, engine_env: }", "CF005", "is empty"),
        ("{model: m, context: 32x}", "CF005", "such as 32k"),
        ("{model: m, devices: [0, 0]}", "CF005", "each device once"),
        ("{model: m, devices: all}", "CF005", "each card by its number"),
        ("{model: m, trust_remote_code: yes}", "CF005", "expected true or false"),
        ("{model: m, engine_args: {--x: false}}", "CF005", "neither on nor off"),
        ('{model: m, engine_args: ["a\\0b"]}', "CF005", "U+0000"),
        ("{model: m, engine_env: {a b: c}}", "CF005", "the name of a variable"),
        ("{model: [m]}", "CF005", "expected a text"),
        ('{model: m, port: "${PORT}"}', "CF005", "`port`"),
        ("3", "CF005", "expected a map"),
    ],
)
def test_what_cannot_be_is_said(service, id, words):
    error = refused(f"version: 1\nservices:\n  a: {service}\n")
    assert (error.id, error.place.line) == (id, 3), error.what
    assert words in error.what


@pytest.mark.parametrize(
    ("text", "id", "words"),
    [
        ("", "CF017", "is empty"),
        ("# nothing\n", "CF017", "is empty"),
        ("- a", "CF017", "expected a map"),
        ("version: 1\n---\nversion: 1", "CF017", "2 documents"),
        ("version: 2\nservices: {a: {model: m}}", "CF009", "version 2"),
        ("version: true\nservices: {a: {model: m}}", "CF005", "`version` is true"),
        ("version: '1'\nservices: {a: {model: m}}", "CF005", '`version` is "1"'),
        ("services: {a: {model: m}}", "CF004", "no `version`"),
        ("version: 1", "CF004", "`services` is missing"),
        ("version: 1\nservices: {}", "CF005", "expected at least one"),
        ("version: 1\nservice: {a: {model: m}}\nservices: {a: {model: m}}", "CF002", "unknown key `service`"),
        ("version: 1\nservices: {A b: {model: m}}", "CF039", "cannot name a service"),
        ("version: 1\nservices: {a: {model: m}, a: {model: n}}", "CF051", "already said"),
        ("version: 1\n\tservices: 1", "CF050", "a tab"),
        ("version: 1\nservices: {a: {model: m, port: 8000}, b: {model: m, port: 8000}}", "CF008", "port 8000 of `b`"),
        ("version: 1\ndefaults: {port: 8000, model: m}\nservices: {a: , b: , c: }", "CF008", "more than one service"),
    ],
)
def test_a_file_that_is_none_is_told_from_one_with_a_mistake(text, id, words):
    error = refused(text)
    assert error.id == id, error.what
    assert words in error.what


def test_all_problems_of_a_file_come_together_in_the_order_of_its_lines():
    error = refused(
        "version: 1\nservices:\n  a:\n    port: x\n    xreasoning: off\n    model: 7\n  b:\n    model: m\n"
        "    reasoning: {mode: budget}\n  c:\n    devices: cpu\n"
    )
    assert (error.id, error.place.line) == ("CF018", 4)
    begun = [fix.split(":")[0] for fix in error.fix]
    assert begun == ["line 4 [CF005]", "line 5 [CF002]", "line 6 [CF005]", "line 9 [CF006]", "line 10 [CF004]"]


def shared(*services):
    return "version: 1\nservices:\n" + "".join(f"  s{at}: {{model: m, {said}}}\n" for at, said in enumerate(services))


def test_shares_of_one_card_add_up_as_written():
    load(shared("devices: 0, share: 0.7", "devices: [0, 1], share: 0.2", "devices: 0, share: 0.1"), path="f")
    error = refused(shared("devices: 0, share: 0.6", "devices: [1, 0], share: 0.5"))
    assert (error.id, error.place.line) == ("CF007", 4)
    assert "0.6 (s0) + 0.5 (s1) = 1.1" in error.what


def test_a_card_without_a_share_belongs_to_one_service():
    error = refused(shared("devices: GPU-1111222233, share: 0.5", "devices: gpu-11112222"))
    assert error.id == "CF007"
    assert "GPU-1111222233 is given to `s0` (line 3) and `s1` (line 4), and `s1` has no `share`" in error.what
    load(shared("devices: cpu", "devices: cpu", "devices: auto", "devices: 1", "devices: 10"), path="f")


def test_no_secret_is_repeated():
    error = refused("version: 1\nservices:\n  a: {model: m, port: hf_abcdefghijklmnopqrstuvwxyz123456}\n")
    assert "hf_abc" not in error.what + error.evidence


def test_bytes_that_are_no_text_are_refused():
    for data in (b"version: 1\nservices: \xff", "version: 1".encode("utf-16"), b"#" * (2**20 + 1)):
        with pytest.raises(InputError) as caught:
            decoded(data, path="f")
        assert caught.value.id == "CF017"
    assert decoded(b"\xef\xbb\xbfversion: 1", path="f") == "version: 1"
