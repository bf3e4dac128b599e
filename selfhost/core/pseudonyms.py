"""Made-up names in place of real ones: the same for the same, so that what belongs together still does. Pure."""

import re
from collections.abc import Callable, Mapping

# Addresses that stand for none: RFC 5737, RFC 3849, RFC 7042 (a locally administered one), RFC 2606.
_V4_BLOCKS = ("192.0.2", "198.51.100", "203.0.113")


def _uuid(number: int) -> str:
    return f"00000000-0000-4000-8000-{number:012d}"


def _address(number: int) -> str:
    block, last = divmod(number - 1, 254)
    return f"{_V4_BLOCKS[block]}.{last + 1}" if block < len(_V4_BLOCKS) else f"198.18.{block % 256}.{last + 1}"


# What a container's id begins with is its name inside, hence a number that shows in the first digits.
_FORMS: Mapping[str, Callable[[int], str]] = {
    "uuid": _uuid,
    "id": lambda number: f"{number:012x}" + "0" * 52,
    "ipv4 address": _address,
    "ipv6 address": lambda number: f"2001:db8::{number:x}",
    "mac address": lambda number: f"02:00:00:00:{number >> 8 & 255:02x}:{number & 255:02x}",
    "e-mail address": lambda number: f"user-{number}@example.com",
    "serial number": lambda number: f"{number:013d}",
}


class Pseudonyms:
    """`replaced` counts the different things that got another name, by kind."""

    def __init__(self) -> None:
        self._given: dict[tuple[str, str], str] = {}
        self._numbers: dict[str, int] = {}

    @property
    def replaced(self) -> dict[str, int]:
        return dict(sorted(self._numbers.items()))

    def of(self, kind: str, real: str) -> str:
        key = (kind, real.lower())
        if key not in self._given:
            number = self._next(kind)
            form = _FORMS.get(kind)
            self._given[key] = form(number) if form else f"{kind.replace(' ', '-')}-{number}"
        return self._given[key]

    def short_id(self, real: str) -> str:
        """The first twelve digits of a container's id, as `docker ps` shows them and as its host name inside."""
        known = (name for (kind, long), name in self._given.items() if kind == "id" and long.startswith(real.lower()))
        return (next(known, "") or self.of("id", real))[:12]

    def uuid(self, real: str) -> str:
        """Keeps the separator: systemd writes those of pods with `_`."""
        separator = "_" if "_" in real else "-"
        return self.of("uuid", re.sub("[-_]", "", real)).replace("-", separator)

    def blot(self, kind: str) -> None:
        """Something that was blotted out without another name."""
        self._next(kind)

    def knows(self, name: str) -> bool:
        return name in self._given.values()

    def _next(self, kind: str) -> int:
        self._numbers[kind] = self._numbers.get(kind, 0) + 1
        return self._numbers[kind]
