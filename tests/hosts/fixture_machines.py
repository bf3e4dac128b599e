"""Files and outputs of real machines as snapshots: their own forms (`chardev`, `errno`, `symlink`) into ours."""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from selfhost.core.recorded import Recorded

FIXTURES = Path(__file__).parent.parent / "cases" / "host-fixtures"


def machine(*commands: Mapping[str, Any], **keys: Any) -> Recorded:
    return Recorded({"commands": list(commands), **keys})


def said(*argv: str, file: str, key: str = "", rc: int = 0) -> dict[str, Any]:
    """One command whose output is a file of the collection, or one member of it."""
    text = (FIXTURES / file).read_text()
    return {"argv": list(argv), "rc": rc, "stdout": json.dumps(json.loads(text)[key]) if key else text}


def recorded(file: str) -> dict[str, Any]:
    """A file that is one whole command."""
    return dict(json.loads((FIXTURES / file).read_text()))


def tree(file: str) -> Recorded:
    """A `*.tree.json`, or a bundle of `nesting/` with its environment."""
    found = json.loads((FIXTURES / file).read_text())
    env = found.get("env", {}) if "files" in found else {}
    return Recorded({**converted(found.get("files", found)), "env": env})


def converted(entries: Mapping[str, Any]) -> dict[str, Any]:
    snapshot: dict[str, Any] = {"files": {}, "links": {}, "nodes": {}, "errors": {}}
    for path, entry in entries.items():
        if isinstance(entry, str):
            snapshot["files"][path] = entry
        elif "symlink" in entry:
            snapshot["links"][path] = entry["symlink"]
        elif "chardev" in entry:
            major, minor = entry["chardev"].split(":")
            snapshot["nodes"][path] = {
                "type": "c",
                "major": int(major),
                "minor": int(minor),
                "mode": entry.get("mode", "0666"),
                "uid": entry.get("uid", 0),
                "gid": entry.get("gid", 0),
                "open": entry.get("errno", "ok"),
            }
        elif "errno" in entry:
            snapshot["errors"][path] = entry["errno"]
        elif "dir" in entry:
            snapshot["files"][f"{path}/dev"] = ""
        else:
            snapshot["nodes"][path] = {"type": "f"}
    return snapshot


def kfd(**nodes: str) -> dict[str, str]:
    """Files of a topology: `node2="kfd/mi300x-cpx.node2.properties"`."""
    base = "/sys/class/kfd/kfd/topology/nodes"
    return {
        f"{base}/{name.removeprefix('node')}/properties": (FIXTURES / "amd" / file).read_text()
        for name, file in nodes.items()
    }
