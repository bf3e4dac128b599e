"""Numbers as they are typed."""

import pytest
import typer

from selfhost.cli._numbers import short, whole


@pytest.mark.parametrize(
    ("text", "number"),
    [
        ("8192", 8192),
        ("32k", 32_000),
        ("32K", 32_768),
        ("1m", 1_000_000),
        ("1M", 1_048_576),
        ("1.5k", 1500),
        ("-5", -5),
    ],
)
def test_a_number_may_have_the_units_of_the_engines_own_flags(text: str, number: int) -> None:
    assert short(text) == number


@pytest.mark.parametrize("text", ["", "abc", "8192.5", "k", "1e3", "nan", "inf", "32kk", "32 k", "0x10", "1g"])
def test_anything_else_is_no_number(text: str) -> None:
    with pytest.raises(typer.BadParameter, match="is not a whole number"):
        short(text)


def test_a_port_has_no_units() -> None:
    assert whole(" 8000 ") == 8000
    with pytest.raises(typer.BadParameter, match="`8k` is not a whole number"):
        whole("8k")
