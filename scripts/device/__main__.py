"""What selfhost says about this machine's NVIDIA cards, held against what the cards do: `make device-check`.

Needs no network and about four minutes. Every part that cannot run says why; only what was measured is judged.
Everything lands in device-out/: the snapshot, the facts, the findings, the samples and check.json.
"""

import argparse
import json
import subprocess
import sys
import tomllib
from pathlib import Path
from typing import Any

HERE = Path(__file__).parent
sys.path.insert(0, str(HERE))

import sampling  # noqa: E402  a sibling file: this folder is a program, not a package
import verdicts  # noqa: E402


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, prog="make device-check")
    parser.add_argument("--out", type=Path, default=Path("device-out"))
    parser.add_argument("--idle-s", type=float, default=60.0)
    parser.add_argument("--load-s", type=float, default=60.0)
    parser.add_argument("--torch-python", default=sys.executable, help="an interpreter that has torch")
    asked = parser.parse_args()
    asked.out.mkdir(parents=True, exist_ok=True)

    host = facts(asked.out)
    cards = [card for card in host.get("accelerators", []) if card["vendor"] == "nvidia"]
    results: list[verdicts.Verdict] = [verdicts.detect_answered(host), verdicts.cards_found(cards)]
    if cards:
        results += measured(asked, cards)
    report = {
        "schema": "selfhost.device-check/1",
        "ok": not any(result.state == "bad" for result in results),
        "checks": [result.to_json() for result in results],
    }
    (asked.out / "check.json").write_text(json.dumps(report, indent=1) + "\n", encoding="utf-8")
    for result in results:
        print(f"{result.state:8} {result.title}: {result.seen}")
    return 1 if not report["ok"] else 3 if not cards else 0


def facts(out: Path) -> dict[str, Any]:
    """detect and doctor as a user runs them; their output is kept whatever they say."""
    for name, words in (
        ("host.json", ("detect", "--json", "--save", str(out / "snapshot.json"))),
        ("host.txt", ("detect",)),
        ("doctor.json", ("doctor", "--json")),
        ("doctor.txt", ("doctor",)),
    ):
        done = subprocess.run(
            [sys.executable, "-m", "selfhost", *words], capture_output=True, text=True, timeout=60, check=False
        )
        note = "" if name.endswith(".json") else done.stderr
        (out / name).write_text(done.stdout + note, encoding="utf-8")
        print(f"{'ran':8} selfhost {' '.join(words[:2])}: exit {done.returncode}")
    return dict(json.loads((out / "host.json").read_text(encoding="utf-8")))


def measured(asked: argparse.Namespace, cards: list[dict[str, Any]]) -> list[verdicts.Verdict]:
    out: Path = asked.out
    results: list[verdicts.Verdict] = []
    idle = sampling.sample(asked.idle_s)
    keep(out / "idle.json", idle)
    results.append(verdicts.energy("idle", idle))

    load = subprocess.Popen(
        [asked.torch_python, str(HERE / "load.py"), "--seconds", str(asked.load_s + 10)],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    try:
        sampling.settle(5.0)
        under_load = sampling.sample(asked.load_s) if load.poll() is None else {"failure": "the load ended at once"}
    finally:
        load.terminate()
        _, said = load.communicate(timeout=30)
    if "failure" in under_load:
        under_load["failure"] += ": " + (said.strip().splitlines() or ["no text"])[-1]
    keep(out / "load.json", under_load)
    results.append(verdicts.energy("load", under_load))
    results.append(verdicts.load_is_seen(idle, under_load))

    speed = torch_figures(asked.torch_python, "speed.py", timeout_s=90)
    keep(out / "torch.json", speed)
    table = tomllib.loads((HERE / "sheet.toml").read_text(encoding="utf-8"))["card"]["rows"]
    results.append(verdicts.bandwidth(speed, table))
    results.append(verdicts.fp8_is_native(speed, cards))
    results.append(verdicts.same_view(speed, cards))
    return results


def torch_figures(python: str, script: str, *, timeout_s: float) -> dict[str, Any]:
    try:
        done = subprocess.run(
            [python, str(HERE / script)], capture_output=True, text=True, timeout=timeout_s, check=False
        )
        return dict(json.loads(done.stdout)) if done.returncode == 0 else {"failure": done.stderr.strip()[-300:]}
    except (OSError, ValueError, subprocess.TimeoutExpired) as error:
        return {"failure": str(error)[:300]}


def keep(path: Path, data: dict[str, Any]) -> None:
    path.write_text(json.dumps(data) + "\n", encoding="utf-8")


if __name__ == "__main__":
    sys.exit(main())
