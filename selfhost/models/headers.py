"""The header of a safetensors file: eight bytes of length, then JSON with type, shape and place of each tensor.

Source: https://huggingface.co/docs/safetensors/index#format
"""

import json
import struct
from math import prod
from typing import NamedTuple, TypeGuard

LENGTH_BYTES = 8
HEADER_LIMIT = 100_000_000
"""The format's own limit (safetensors, MAX_HEADER_SIZE)."""
_BITS = {
    "BOOL": 8, "U8": 8, "I8": 8, "F8_E4M3": 8, "F8_E5M2": 8, "F8_E8M0": 8, "F8_E4M3FNUZ": 8, "F8_E5M2FNUZ": 8,
    "I16": 16, "U16": 16, "F16": 16, "BF16": 16, "I32": 32, "U32": 32, "F32": 32, "I64": 64, "U64": 64, "F64": 64,
    "C64": 64, "F4": 4, "F6_E2M3": 6, "F6_E3M2": 6,
}  # fmt: skip


class BadHeaderError(ValueError):
    """The bytes are no header; the text says why in a sentence."""


class Tensor(NamedTuple):  # a large model has 90,000: a frozen dataclass takes four times as long to make
    """One tensor. `end` is the offset behind it, counted from the end of the header."""

    name: str
    dtype: str
    bytes: int
    end: int


def length_of(start: bytes) -> int:
    """Bytes of the JSON that follows the first eight. Raises BadHeaderError."""
    length = int(struct.unpack("<Q", start[:LENGTH_BYTES])[0]) if len(start) >= LENGTH_BYTES else 0
    if not 2 <= length <= HEADER_LIMIT:
        raise BadHeaderError("Its first eight bytes are no header length.")
    return length


def tensors_in(header: bytes) -> tuple[Tensor, ...]:
    """All tensors of a header without its first eight bytes. Raises BadHeaderError."""
    try:
        described = json.loads(header)
        return tuple(_tensor(name, one) for name, one in described.items() if name != "__metadata__")
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
        if isinstance(error, BadHeaderError):
            raise
        raise BadHeaderError("It holds no JSON description of tensors.") from None


def _tensor(name: str, one: dict[str, object]) -> Tensor:
    offsets, shape, dtype = one["data_offsets"], one["shape"], str(one["dtype"])
    if not _counts(offsets) or len(offsets) != 2 or offsets[0] > offsets[1]:
        raise BadHeaderError("A tensor's data_offsets are no byte positions.")
    size = offsets[1] - offsets[0]
    if not _counts(shape):
        raise BadHeaderError(f"The shape of {name[:80]} is no list of sizes.")
    bits = _BITS.get(dtype)
    if bits is not None and (prod(shape) * bits + 7) // 8 != size:
        raise BadHeaderError(f"{name[:80]} has {size:,} bytes, not those of its shape and type.")
    return Tensor(name, dtype, size, offsets[1])


def _counts(value: object) -> TypeGuard[list[int]]:
    return isinstance(value, list) and all(type(one) is int and one >= 0 for one in value)
