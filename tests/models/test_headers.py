"""Headers of safetensors files: read, or refused with the reason."""

import json
import struct

import pytest

from selfhost.models.headers import BadHeaderError, length_of, tensors_in


def header(**tensors: object) -> bytes:
    return json.dumps({"__metadata__": {"format": "pt"}, **tensors}).encode()


def one(dtype: str, shape: list[int], start: int, end: int) -> dict[str, object]:
    return {"dtype": dtype, "shape": shape, "data_offsets": [start, end]}


@pytest.mark.parametrize(
    ("dtype", "shape", "size"),
    [
        ("BF16", [3, 5], 30),
        ("F8_E4M3", [128, 128], 16384),
        ("F32", [1, 1], 4),
        ("F4", [3], 2),  # two values in a byte
        ("U8", [0], 0),
        ("I64", [], 8),
        ("NEW_TYPE", [7], 99),  # of a type that is in no table only the place is known
    ],
)
def test_a_tensor_has_the_bytes_of_its_shape_and_type(dtype: str, shape: list[int], size: int) -> None:
    (tensor,) = tensors_in(header(w=one(dtype, shape, 10, 10 + size)))
    assert (tensor.name, tensor.dtype, tensor.bytes, tensor.end) == ("w", dtype, size, 10 + size)


@pytest.mark.parametrize(
    ("data", "word"),
    [
        (b"", "no JSON"),
        (b"[]", "no JSON"),
        (b'{"w": 1}', "no JSON"),
        (b"\xff\xfe", "no JSON"),
        (b"[" * 100_000, "no JSON"),
        (header(w={"dtype": "BF16", "shape": [1]}), "no JSON"),
        (header(w=one("BF16", [1], 4, 2)), "byte positions"),
        (header(w=one("BF16", [1], -2, 0)), "byte positions"),
        (header(w={"dtype": "BF16", "shape": [1], "data_offsets": [0, 2.0]}), "byte positions"),
        (header(w={"dtype": "BF16", "shape": "1", "data_offsets": [0, 2]}), "list of sizes"),
        (header(w=one("BF16", [10**9, 10**9], 0, 2)), "not those of its shape"),
    ],
)
def test_nonsense_is_refused_with_the_reason(data: bytes, word: str) -> None:
    with pytest.raises(BadHeaderError, match=word):
        tensors_in(data)


@pytest.mark.parametrize("start", [b"", b"\x01\x02", struct.pack("<Q", 1), struct.pack("<Q", 10**12), b"version "])
def test_no_header_length_is_none(start: bytes) -> None:
    with pytest.raises(BadHeaderError, match="first eight bytes"):
        length_of(start)


def test_the_length_is_little_endian() -> None:
    assert length_of(b"\x00\x01\x00\x00\x00\x00\x00\x00{") == 256
