"""The fingerprints of a public key file, read without gpg: a fresh Debian has none."""  # noqa: INP001 - Ansible finds it by its folder

import base64
import binascii
import hashlib
import re
from collections.abc import Callable, Iterator

_BLOCK = re.compile(
    r"-----BEGIN PGP PUBLIC KEY BLOCK-----\r?\n(?:[^\r\n:]+: [^\r\n]*\r?\n)*\r?\n([A-Za-z0-9+/=\s]+?)"
    r"(?:\r?\n=[A-Za-z0-9+/]{4})?\r?\n-----END PGP PUBLIC KEY BLOCK-----"
)
_PRIMARY = 6
# Of a public key: signature, primary key, subkey, user id, attribute (RFC 9580, 10.1). Anything else is no key.
_OF_A_KEY = (2, _PRIMARY, 14, 13, 17)


def openpgp_fingerprints(text: str) -> list[str]:
    """Fingerprints of all primary keys in an armoured file, in order; [] for what is not entirely such a file."""
    whole = _BLOCK.fullmatch(text.strip())
    if whole is None:
        return []
    try:
        packets = list(_packets(base64.b64decode("".join(whole[1].split()), validate=True)))
    except (ValueError, IndexError, binascii.Error):
        return []
    if not packets or any(tag not in _OF_A_KEY for tag, _ in packets):
        return []
    keys = [body for tag, body in packets if tag == _PRIMARY]
    # Version 4 (RFC 9580, 5.5.4.2). SHA-1 is what the standard says here.
    return [
        hashlib.sha1(b"\x99" + len(body).to_bytes(2, "big") + body, usedforsecurity=False).hexdigest().upper()
        if body[:1] == b"\x04"
        else "UNKNOWN"
        for body in keys
    ]


def _packets(data: bytes) -> Iterator[tuple[int, bytes]]:
    """Tag and body of each packet (RFC 9580, 4.2). Raises ValueError or IndexError where it is not one."""
    at = 0
    while at < len(data):
        head = data[at]
        if not head & 0x80:
            raise ValueError("not a packet")
        at += 1
        if head & 0x40:
            tag, (length, at) = head & 0x3F, _new_length(data, at)
        else:
            size = {0: 1, 1: 2, 2: 4}[head & 3] if head & 3 != 3 else 0
            if not size:
                raise ValueError("of no stated length")
            tag, length = (head >> 2) & 0xF, int.from_bytes(data[at : at + size], "big")
            at += size
        if at + length > len(data):
            raise ValueError("cut off")
        yield tag, data[at : at + length]
        at += length


def _new_length(data: bytes, at: int) -> tuple[int, int]:
    first = data[at]
    if first < 192:
        return first, at + 1
    if first < 224:
        return ((first - 192) << 8) + data[at + 1] + 192, at + 2
    if first == 255:
        return int.from_bytes(data[at + 1 : at + 5], "big"), at + 5
    raise ValueError("in parts")


class FilterModule:
    """What Ansible asks for."""

    def filters(self) -> dict[str, Callable[..., object]]:
        return {"openpgp_fingerprints": openpgp_fingerprints}
