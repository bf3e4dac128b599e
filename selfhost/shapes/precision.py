"""Names of number formats, and the bytes that one value takes in each."""

from typing import Final

PLAIN: Final = {"bf16": 2.0, "fp16": 2.0, "fp32": 4.0}
"""Formats that need no scales beside their values."""
VALUE_BYTES: Final = {**PLAIN, "fp8": 1.0, "int8": 1.0}
"""Formats of whole bytes; scales, where there are any, are a few per row and not counted."""

_WRITTEN: Final = {"bfloat16": "bf16", "float16": "fp16", "half": "fp16", "float32": "fp32", "float": "fp32"}


def short_name(written: str) -> str:
    """`bf16` for `bfloat16`, `torch.bfloat16` and `BF16`: the name used here, of one that torch or a person wrote."""
    name = written.lower().removeprefix("torch.")
    return _WRITTEN.get(name, name)
