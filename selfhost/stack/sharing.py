"""Services on one host: each card to one of them or in shares that add up, each port to one."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from decimal import Decimal
from typing import Final

from selfhost.core.errors import InputError
from selfhost.shapes.finding import Finding, Place, Severity
from selfhost.shapes.service import Service
from selfhost.stack.asked import Asked
from selfhost.stack.problems import Problems

OVERLAP: Final = "CF007"
PORTS: Final = "CF008"
LEFT: Final = "CF089"
_CHOSEN: Final = ("cpu", "auto")
_UUID_BEGINNING: Final = 6


def check(services: Sequence[Asked], problems: Problems) -> None:
    """Everything that the file alone tells. A number and a uuid may be one card: only the machine knows."""
    for one in services:
        if "share" in one.given and one.given.get("devices") == ["cpu"]:
            problems.add(
                one.spot_of("share"),
                f"`share` of `{one.name}` is of a card's memory, and it runs on the CPU",
                why="On the CPU the KV cache is sized by `context` and `concurrency`.",
                id="CF006",
                fix=("take `share` out",),
            )
    for device, users in _by_device({one.name: one.given.get("devices", ()) for one in services}).items():
        _one_card(device, [one for one in services if one.name in users], problems)
    _ports(services, problems)


def _one_card(device: str, users: Sequence[Asked], problems: Problems) -> None:
    if len(users) < 2 or any("share" in one.wrong for one in users):
        return
    last = users[-1]
    without = [one for one in users if "share" not in one.given]
    if without:
        lines = " and ".join(f"`{one.name}` (line {one.spot_of('devices').line})" for one in users)
        problems.add(
            last.spot_of("devices"),
            f"{_shown(device)} is given to {lines}, and {_names(one.name for one in without)} no `share`",
            why="An engine without a share takes nearly all of a card's memory, so the second one would not start.",
            id=OVERLAP,
            fix=(f"give each its part, for instance:\nshare: {_even(len(users))}", "or give each a card of its own"),
        )
        return
    shares = {one.name: one.given["share"] for one in users}
    if _sum(shares) > 1:
        problems.add(last.spot_of("share"), _too_much(device, shares), why=_WHY, id=OVERLAP, fix=_fix(len(users)))


_WHY: Final = "A share is of the whole card, whoever else is on it."


def _fix(users: int) -> tuple[str, ...]:
    return (f"lower them, for instance to\nshare: {_even(users)}", "or give one of them another card")


def _too_much(device: str, shares: Mapping[str, float]) -> str:
    terms = " + ".join(f"{Decimal(str(share))} ({name})" for name, share in shares.items())
    return f"the shares of {_shown(device)} add up to more than 1: {terms} = {_sum(shares)}"


def _shown(device: str) -> str:
    return f"device {device}" if device.isdecimal() else device


def _sum(shares: Mapping[str, float]) -> Decimal:
    """As written: 0.7 + 0.2 + 0.1 is 1."""
    return sum((Decimal(str(share)) for share in shares.values()), Decimal(0))


def _names(names: Iterable[str]) -> str:
    quoted = [f"`{name}`" for name in names]
    return f"{', '.join(quoted)} {'has' if len(quoted) == 1 else 'have'}"


def _even(users: int) -> str:
    """The equal part of each, rounded down."""
    return str((Decimal(95) // users) / 100)


def _by_device(devices: Mapping[str, Iterable[str]]) -> dict[str, list[str]]:
    """The services of each device. The beginning of a uuid stands for the whole, as CUDA accepts it."""
    found: dict[str, list[str]] = {}
    words = [(name, word) for name, given in devices.items() for word in given if word not in _CHOSEN]
    for name, word in words:
        longest = max((other for _, other in words if _same(word, other)), key=len)
        users = found.setdefault(longest, [])
        if name not in users:
            users.append(name)
    return found


def _same(word: str, other: str) -> bool:
    one, two = word.lower(), other.lower()
    if one == two:
        return True
    shorter, longer = sorted((one, two), key=len)
    return len(shorter) > _UUID_BEGINNING and not shorter.isdecimal() and longer.startswith(shorter)


def _ports(services: Sequence[Asked], problems: Problems) -> None:
    first: dict[int, Asked] = {}
    for one in services:
        port = one.given.get("port")
        if port is None:
            continue
        other = first.setdefault(port, one)
        if other is not one and one.spot_of("port") == other.spot_of("port"):
            problems.add(
                one.spot_of("port"),
                f"port {port}, said once, would be that of more than one service",
                id=PORTS,
                fix=("move it into the service that it is for",),
            )
        elif other is not one:
            where = f"line {other.spot_of('port').line}"
            problems.add(
                one.spot_of("port"),
                f"port {port} of `{one.name}` is already that of `{other.name}` ({where})",
                id=PORTS,
                fix=(f"give it another one:\nport: {_free(services, port)}", "or leave `port` out"),
            )


def _free(services: Sequence[Asked], port: int) -> int:
    taken = {one.given.get("port") for one in services}
    return next((number for number in range(port + 1, 65_536) if number not in taken), 8000)


def refuse_overlap(services: Sequence[Service], devices: Mapping[str, Sequence[str]]) -> None:
    """Once the machine is known: `devices` has the one stable id of each card that each service was given.

    Raises InputError for a card that two services have without shares, or with more than the whole of it.
    """
    by_name = {one.name: one for one in services}
    for device, users in _by_device({name: tuple(ids) for name, ids in devices.items()}).items():
        without = [name for name in users if by_name[name].share is None]
        shares = {name: by_name[name].share or 0.0 for name in users}
        if len(users) > 1 and (without or _sum(shares) > 1):
            whose = " and ".join(f"`{name}`" for name in users)
            given = f"{_shown(device)} is given to {whose}, and {_names(without)} no `share`"
            what = given if without else _too_much(device, shares)
            raise InputError(what, why=_WHY, fix=_fix(len(users)), id=OVERLAP, place=_place(by_name[users[-1]]))


def fits_beside(service: Service, others: Sequence[Service]) -> bool:
    """Whether a card that these have is also one for `service`: each says a share, and they add up."""
    shares = {one.name: one.share for one in (service, *others)}
    return all(share is not None for share in shares.values()) and _sum({n: s or 0.0 for n, s in shares.items()}) <= 1


def of_what_is_left(
    meant: Sequence[Service], services: Sequence[Service], *, devices: Mapping[str, Sequence[str]],
    engines: Mapping[str, str],
) -> Iterator[Finding]:  # fmt: skip
    """SGLang takes its share of what is free when it starts: beside others that is less than what the file says."""
    for one in meant:
        beside = [
            other
            for other in services
            if other is not one and set(devices[other.name]) & set(devices[one.name]) and other.share is not None
        ]
        if engines[one.name] != "sglang" or one.share is None or not beside:
            continue
        held = _sum({other.name: other.share or 0.0 for other in beside})
        left = Decimal(1) - held
        yield Finding(
            id=LEFT,
            severity=Severity.WARNING,
            title=f"`{one.name}` gets about {Decimal(str(one.share)) * left:.2f} of the card, not "
            f"{Decimal(str(one.share))}, once {_names_only(beside)} {'runs' if len(beside) == 1 else 'run'}",
            place=_place(one) or Place(),
            why=f"SGLang's share is of what is free at its start, here {left.normalize():f}; its plan counts an empty "
            "card, and its cache may come out too small to start.",
            fix=("let vLLM serve it, whose share is of the whole card:\nengine: vllm",
                 "or give it a card of its own"),
            source="SGLang 0.5.23: srt/model_executor/model_runner.py",
        )  # fmt: skip


def _names_only(services: Sequence[Service]) -> str:
    return ", ".join(f"`{one.name}`" for one in services)


def _place(service: Service) -> Place | None:
    """Of the key that put it there; None for a service that no file asked for."""
    origin = service.origins.get("share") or service.origins.get("device") or service.origins.get("name", "")
    path, colon, rest = origin.rpartition(" ")[0].rpartition(":")
    return Place(path=path, line=int(rest)) if colon and rest.isdecimal() else None
