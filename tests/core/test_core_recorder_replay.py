"""What was recorded looks again as it did live."""

import dataclasses
import json
from pathlib import Path

from selfhost.core.recorded import Recorded
from selfhost.core.recorder import Recorder
from selfhost.core.redaction import redacted
from selfhost.core.system import LocalSystem
from selfhost.hosts.detect import detect
from selfhost.shapes.host import Host, Unknown

SNAPSHOTS = Path(__file__).parent.parent / "snapshots"


def without_time(host: Host) -> tuple[object, ...]:
    """Free memory and disk change between two looks; a snapshot has our ids in a place of their own."""
    around = host.surroundings and dataclasses.replace(host.surroundings, uid=Unknown("not compared"))
    return (host.os, host.kernel, host.cpu, host.nesting, host.accelerators, host.pci, host.memory.total, around)


def test_this_machine_replays_as_it_was_seen() -> None:
    recorder = Recorder(LocalSystem())
    live = detect(recorder, wide=True)
    again = detect(Recorded(json.loads(json.dumps(recorder.snapshot()))), wide=True)
    assert without_time(again) == without_time(live)


def test_recorded_machines_survive_being_recorded_and_redacted_again() -> None:
    for path in sorted(SNAPSHOTS.glob("*.json")):
        recorder = Recorder(Recorded.load(path))
        live = detect(recorder, wide=True)
        clean, _ = redacted(recorder.snapshot())
        again = detect(Recorded(clean), wide=True)
        shown = [
            (card.vendor, card.name, card.pci, card.arch, card.memory_total, card.usable) for card in live.accelerators
        ]
        assert [
            (card.vendor, card.name, card.pci, card.arch, card.memory_total, card.usable) for card in again.accelerators
        ] == shown, path.name
        assert [layer.label for layer in again.nesting] == [layer.label for layer in live.nesting], path.name
