"""Flags that came and went, by the version that had them first or no more."""

import pytest

from selfhost.engines.removed import removed
from selfhost.engines.since import since, too_new


@pytest.mark.parametrize(
    ("engine", "flag", "version"),
    [
        # Read in the wheels: the parser of the version before has no such option.
        ("vllm", "--max-num-queued-reqs", "0.29.0"),
        ("vllm", "--log-level", "0.31.0"),
        ("vllm", "--device-memory-utilization", "0.31.0"),
        ("vllm", "--watchdog-config", "0.33.0"),
        ("vllm", "--max-model-len", ""),
        ("sglang", "--default-chat-template-kwargs", "0.5.16"),
        ("sglang", "--attn-dp-size", "0.5.22"),
        ("sglang", "--tp-size", ""),
    ],
)
def test_a_flag_is_known_since_the_version_that_brought_it(engine: str, flag: str, version: str) -> None:
    assert since(engine, flag) == version


def test_a_flag_that_a_version_does_not_have_is_named() -> None:
    argv = ("--max-model-len", "4096", "--watchdog-config.timeout", "3", "--log-level=debug")
    assert too_new("vllm", "0.30.0", argv) == ("--watchdog-config", "--log-level")
    assert too_new("vllm", "0.32.0", argv) == ("--watchdog-config",)
    assert too_new("vllm", "0.33.0", argv) == ()


def test_no_flag_both_came_later_and_is_gone() -> None:
    for engine in ("vllm", "sglang"):
        gone = {row.name for row in removed(engine) if row.kind == "flag"}
        assert gone
        assert not [name for name in gone if since(engine, name)]
