"""Numbers behind `--` that the engine's own parser or start would refuse, and that a plan would silently pass over."""

from collections.abc import Callable

from selfhost.core.errors import InputError

SHARES = ("--gpu-memory-utilization",)
COUNTS = (
    "--tensor-parallel-size", "--pipeline-parallel-size", "--data-parallel-size", "--max-num-seqs", "--block-size",
)  # fmt: skip
LENGTHS = ("--max-model-len",)
"""They also take `auto` and `-1`, which mean the model's own."""
_OWN = ("auto", "-1")


def refuse_numbers(text: Callable[[str], str | None], count: Callable[[str], int | None]) -> None:
    """Both are asked by vLLM's name of a flag. Raises InputError for the first number that cannot be."""
    for name in SHARES:
        value = text(name)
        if value is not None and not _is_share(value):
            raise _refusal(name, value, "a share of the memory, above 0 and up to 1")
    for name in (*COUNTS, *LENGTHS):
        value = text(name)
        if value is None or (name in LENGTHS and value in _OWN):
            continue
        if (count(name) or 0) < 1:
            raise _refusal(name, value, "a whole number of at least 1")


def _is_share(value: str) -> bool:
    try:
        return 0 < float(value) <= 1
    except ValueError:
        return False


def _refusal(name: str, value: str, expected: str) -> InputError:
    return InputError(
        f"`{value}` is no value of {name}: expected {expected}",
        why="It stands behind `--` and goes to the engine, which would stop at its start.",
        fix=("correct it, or leave it out",),
        id="PL073",
    )
