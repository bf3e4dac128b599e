"""What the figures show: good, bad or unknown, with the figures. Pure, so that it is tested without a card."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

State = Literal["good", "bad", "unknown"]
ENERGY_TOLERANCE = 0.05
"""NVML's power is a running average and its counter moves in steps; beyond this share they contradict each other."""
COPY_SHARE = (0.60, 1.02)
"""Of the sheet's bandwidth. A copy loses some to refresh and turn-around; above it the table or the card is wrong."""
NATIVE_RATIO = 1.4
"""FP8 units double the rate of BF16 on paper. Weight-only FP8 has no product of its own to time at all."""
SAME_RATIO = 1.1
MEMORY_TOLERANCE = 0.03
"""CUDA leaves out what the driver keeps for itself."""
LOAD_RISE_W = 20.0


@dataclass(frozen=True, slots=True)
class Verdict:
    title: str
    state: State
    seen: str

    def to_json(self) -> dict[str, str]:
        return {"title": self.title, "state": self.state, "seen": self.seen}


def detect_answered(host: Mapping[str, Any]) -> Verdict:
    ok = host.get("schema") == "selfhost.host/1"
    return Verdict(
        "selfhost detect", "good" if ok else "bad", "answered" if ok else str(host.get("error", "no answer"))
    )


def cards_found(cards: Sequence[Mapping[str, Any]]) -> Verdict:
    title = "NVIDIA cards"
    if not cards:
        return Verdict(title, "unknown", "selfhost sees none here, so there is nothing to hold against it")
    usable = [card for card in cards if card["usable"].get("value") is True]
    return Verdict(title, "good" if usable else "bad", f"{len(cards)} seen, {len(usable)} usable")


def integral_j(samples: Sequence[Mapping[str, float]]) -> float:
    """∫P dt by the trapezoid rule, in joules."""
    pairs = zip(samples, samples[1:], strict=False)
    return sum((b["t_s"] - a["t_s"]) * (a["power_w"] + b["power_w"]) / 2 for a, b in pairs)


def energy(name: str, sampled: Mapping[str, Any]) -> Verdict:
    title = f"energy counter against ∫P dt, {name}"
    if "failure" in sampled:
        return Verdict(title, "unknown", sampled["failure"])
    parts, worst = [], 0.0
    for uuid, samples in sampled["cards"].items():
        whole = [entry for entry in samples if "power_w" in entry and "energy_j" in entry]
        if len(whole) < 2:
            return Verdict(title, "unknown", f"{uuid} gives no power or no energy counter")
        counted, summed = whole[-1]["energy_j"] - whole[0]["energy_j"], integral_j(whole)
        worst = max(worst, abs(counted - summed) / summed if summed else 1.0)
        parts.append(f"{counted:.0f} J counted, {summed:.0f} J summed")
    return Verdict(title, "good" if worst <= ENERGY_TOLERANCE else "bad", f"{'; '.join(parts)} ({worst:.1%} apart)")


def load_is_seen(idle: Mapping[str, Any], load: Mapping[str, Any]) -> Verdict:
    title = "load shows in power"
    if "failure" in idle or "failure" in load:
        return Verdict(title, "unknown", str(idle.get("failure") or load.get("failure")))
    rises = [_mean(load["cards"][uuid]) - _mean(samples) for uuid, samples in idle["cards"].items()]
    text = ", ".join(f"{rise:+.0f} W" for rise in rises)
    return Verdict(title, "good" if rises and min(rises) > LOAD_RISE_W else "bad", text)


def _mean(samples: Sequence[Mapping[str, float]]) -> float:
    values = [entry["power_w"] for entry in samples if "power_w" in entry]
    return sum(values) / len(values) if values else 0.0


def bandwidth(speed: Mapping[str, Any], table: Sequence[Mapping[str, Any]]) -> Verdict:
    title = "copy bandwidth against the sheet"
    if "failure" in speed:
        return Verdict(title, "unknown", speed["failure"])
    name = speed["cards"][0]["name"] if speed["cards"] else "no card"
    rows = [row for row in table if row["match"] in name]
    seen = speed["copy_gb_per_s"]
    if not rows:
        return Verdict(title, "unknown", f"{seen:.0f} GB/s; {name} is in no row of sheet.toml")
    sheet = max(rows, key=lambda row: len(row["match"]))["bandwidth_gb_per_s"]
    low, high = COPY_SHARE
    state: State = "good" if low <= seen / sheet <= high else "bad"
    return Verdict(title, state, f"{seen:.0f} of {sheet} GB/s, {seen / sheet:.0%} (read and write counted)")


def fp8_is_native(speed: Mapping[str, Any], cards: Sequence[Mapping[str, Any]]) -> Verdict:
    """The table says sm_89 and later compute FP8; the ratio of times says what this card does."""
    title = "FP8 is native"
    if "failure" in speed:
        return Verdict(title, "unknown", speed["failure"])
    arch = str(cards[0]["arch"].get("value", ""))
    number = arch.removeprefix("sm_")
    expected = number.isdigit() and int(number) >= 89
    if "fp8_s" not in speed:
        state: State = "bad" if expected else "good"
        return Verdict(title, state, f"{arch}: no FP8 product here ({speed.get('fp8_failure', 'no reason given')})")
    ratio = speed["bf16_s"] / speed["fp8_s"]
    text = f"{arch}: FP8 takes 1/{ratio:.2f} of BF16's time"
    if ratio >= NATIVE_RATIO:
        return Verdict(title, "good" if expected else "bad", text)
    if ratio <= SAME_RATIO:
        return Verdict(title, "bad" if expected else "good", text)
    return Verdict(title, "unknown", f"{text}: between {SAME_RATIO} and {NATIVE_RATIO} nothing is shown")


def same_view(speed: Mapping[str, Any], cards: Sequence[Mapping[str, Any]]) -> Verdict:
    """Torch's cards against ours by uuid: name, architecture, memory."""
    title = "torch sees what selfhost sees"
    if "failure" in speed:
        return Verdict(title, "unknown", speed["failure"])
    ours = {card["uuid"]: card for card in cards if card["usable"].get("value") is True}
    theirs = {card["uuid"]: card for card in speed["cards"]}
    if not any(theirs):
        return Verdict(title, "unknown", "this torch gives no uuid")
    if set(ours) != set(theirs):
        return Verdict(
            title, "bad", f"ours {len(ours)}, torch's {len(theirs)}, in common {len(set(ours) & set(theirs))}"
        )
    wrong = [fault for uuid, card in ours.items() for fault in _differences(card, theirs[uuid])]
    return Verdict(title, "bad" if wrong else "good", "; ".join(wrong) or f"{len(ours)} card(s), all alike")


def _differences(ours: Mapping[str, Any], theirs: Mapping[str, Any]) -> list[str]:
    found = []
    if ours["arch"].get("value") != theirs["arch"]:
        found.append(f"{ours['name']}: {ours['arch'].get('value', 'unknown')} here, {theirs['arch']} in torch")
    total = ours["memory_total_bytes"].get("value")
    if total and abs(total - theirs["memory_total_bytes"]) / total > MEMORY_TOLERANCE:
        found.append(f"{ours['name']}: {total} bytes here, {theirs['memory_total_bytes']} in torch")
    return found
