"""A service of a file with what was typed beside it: the command line wins, and no flag stands twice."""

from dataclasses import replace

import pytest

from selfhost.plan.command_line import command_line
from selfhost.plan.typed_over import over
from selfhost.shapes.service import Service

FILE = Service(
    model="m",
    name="chat",
    engine_args=("--max-num-seqs", "4", "--max-num-batched-tokens", "512"),
    origins={"service": "/srv/selfhost.yaml:3 chat"},
)
TYPED = Service(model="", name="")


@pytest.mark.parametrize(("engine", "of_file", "typed", "argv"), [
    ("vllm", ("--max-num-seqs", "4", "--seed", "1"), ("--max-num-seqs", "8"), ("--seed", "1", "--max-num-seqs", "8")),
    ("vllm", ("--max_num_seqs=4",), ("--max-num-seqs", "8"), ("--max-num-seqs", "8")),
    ("vllm", ("--enforce-eager",), ("--no-enforce-eager",), ("--no-enforce-eager",)),
    ("vllm", ("--x.a", "1", "--x.b", "2"), ("--x.b", "3"), ("--x.a", "1", "--x.b", "3")),
    ("vllm", ("--x.a", "1"), ("--x", "{}"), ("--x", "{}")),
    ("vllm", ("--seed", "1"), (), ("--seed", "1")),
    ("sglang", ("--max-running-requests", "4"), ("--max-running-requests", "8"), ("--max-running-requests", "8")),
])  # fmt: skip
def test_a_typed_flag_replaces_that_of_the_file(
    engine: str, of_file: tuple[str, ...], typed: tuple[str, ...], argv: tuple[str, ...]
) -> None:
    made = over(replace(FILE, engine=engine, engine_args=of_file), replace(TYPED, engine_args=typed))
    assert made.engine_args == argv


@pytest.mark.parametrize(("engine", "option", "flag"), [
    ("vllm", "context", "--max-model-len"),
    ("sglang", "context", "--context-length"),
    ("vllm", "concurrency", "--max-num-seqs"),
])  # fmt: skip
def test_a_typed_option_is_not_undone_by_a_flag_of_the_file(engine: str, option: str, flag: str) -> None:
    typed = replace(TYPED, origins={option: f"--{option} 64"})
    made = over(replace(FILE, engine=engine, engine_args=(flag, "32", "--seed", "1")), replace(typed, **{option: 64}))
    assert made.engine_args == ("--seed", "1")
    assert getattr(made, option) == 64


def test_the_command_to_paste_has_the_typed_flags_and_not_those_of_the_file() -> None:
    made = over(FILE, replace(TYPED, engine_args=("--max-num-seqs", "8"), port=8001, origins={"port": "--port 8001"}))
    expected = "selfhost up chat --file /srv/selfhost.yaml --port 8001 -- --max-num-seqs 8"
    assert command_line("up", made) == expected
    assert command_line("up", FILE) == "selfhost up chat --file /srv/selfhost.yaml"
