"""What stands behind `--`: said as it is, and no secret among it."""

import pytest

from selfhost.core.errors import InputError
from selfhost.plan.passed_on import PassedOn

SECRET = "hunter2hunter2"


@pytest.mark.parametrize(
    "words",
    [
        ("--ssl-keyfile-password", SECRET),
        (f"--ssl_keyfile_password={SECRET}",),
        ("--api-key", SECRET),
        ("--api_key", SECRET),
        (f"--hf-token={SECRET}",),
        ("--some-new-token", SECRET),
        ("--signing-key", SECRET),
        ("--store.password", SECRET),
        ("--client-secret", SECRET),
        ("--seed", "7", f"--my_api_key={SECRET}"),
        ("--kv-transfer-config", f'{{"password": "{SECRET}"}}'),
        ("--otlp-traces-endpoint", f"http://me:{SECRET}@collector:4317"),
        ("--seed", f"hf_{SECRET}"),
        ("--enforce-eager", f"hf_{SECRET}"),
        (f"hf_{SECRET}",),
    ],
)
def test_a_secret_is_refused_and_never_repeated(words: tuple[str, ...]) -> None:
    with pytest.raises(InputError) as caught:
        PassedOn.of("vllm", words)
    error = caught.value
    assert SECRET not in " ".join((error.what, error.why, error.evidence, *error.fix))
    assert error.why


@pytest.mark.parametrize("name", ["--max-num-batched-tokens", "--tokenizer", "--skip-tokenizer-init", "--block-size"])
def test_a_flag_that_only_sounds_like_one_is_passed_on(name: str) -> None:
    assert PassedOn.of("vllm", (name, "8")).flags == {name: "8"}


@pytest.mark.parametrize(
    ("words", "reason"),
    [
        (("--bogus-flag",), "passed on to the engine as it is; selfhost does not know this flag"),
        (
            ("--max-model-len", "4k"),
            "passed on to the engine as it is; it counts before selfhost's own choice; the memory was computed with it",
        ),
        (("--cpu-offload-gb", "1"), "passed on to the engine as it is; what it does to memory is not computed"),
        (("--reasoning-parser", "qwen3"), "passed on to the engine as it is; it counts before selfhost's own choice"),
    ],
)
def test_nothing_is_said_to_be_replaced_that_was_never_planned(words: tuple[str, ...], reason: str) -> None:
    (decision,) = PassedOn.of("vllm", words).decisions()
    assert decision.reason == reason


def test_a_number_without_end_is_no_number() -> None:
    assert PassedOn(flags={"--max-num-seqs": "inf"}).count("--max-num-seqs") is None


def test_what_sglang_spells_otherwise_is_asked_for_by_one_name() -> None:
    passed = PassedOn.of("sglang", ("--context-length", "32Ki", "--mem-fraction-static", "0.7", "--tp-size", "2"))
    assert passed.count("--max-model-len") == 32768
    assert passed.fraction("--gpu-memory-utilization") == 0.7
    assert passed.count("--tensor-parallel-size") == 2
    assert passed.count("--max-num-seqs") is None
    assert passed.by("--max-model-len") == "-- --context-length 32Ki"
    assert passed.uncounted == ()
    assert PassedOn.of("sglang", ("--page-size", "64")).uncounted == ("--page-size 64",)
    assert PassedOn.of("vllm", ("--max-model-len", "32K")).count("--max-model-len") == 32768


@pytest.mark.parametrize(
    ("engine", "flag", "value"),
    [
        ("vllm", "--gpu-memory-utilization", "nan"),
        ("vllm", "--gpu-memory-utilization", "inf"),
        ("vllm", "--gpu-memory-utilization", "0"),
        ("vllm", "--gpu-memory-utilization", "1.5"),
        ("vllm", "--tensor-parallel-size", "0"),
        ("vllm", "--tensor-parallel-size", "x"),
        ("vllm", "--max-num-seqs", "0"),
        ("vllm", "--max-model-len", "abc"),
        ("sglang", "--mem-fraction-static", "2"),
        ("sglang", "--mem-fraction-static", "nan"),
        ("sglang", "--context-length", "0"),
    ],
)
def test_numbers_that_no_engine_starts_with_are_refused(engine: str, flag: str, value: str) -> None:
    with pytest.raises(InputError) as refused:
        PassedOn.of(engine, (flag, value))
    assert refused.value.id == "PL073"


@pytest.mark.parametrize("value", ["auto", "-1", "32k"])
def test_a_length_may_be_the_models_own(value: str) -> None:
    assert PassedOn.of("vllm", ("--max-model-len", value)).text("--max-model-len") == value


def test_a_flag_that_sglang_does_not_know_changes_nothing_and_is_listed() -> None:
    passed = PassedOn.of("sglang", ("--max-model-len", "4096", "--kv-cache-memory-bytes", "1000000000000"))
    assert passed.count("--max-model-len") is None
    assert passed.count("--kv-cache-memory-bytes") is None
    said = {decision.value: decision for decision in passed.decisions()}
    assert said["--max-model-len 4096"].by == "-- --max-model-len 4096"
    assert "does not know this flag" in said["--max-model-len 4096"].reason
