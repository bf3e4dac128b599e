"""How long our command takes to start, beside `ramalama version` (PyPI, a venv of its own): interleaved medians.

Prints one JSON object with ratios and targets; exit 1 when one is missed. `--ramalama PATH` names an installed one,
without it one is installed into the user's cache.
"""

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
import venv
from pathlib import Path

RUNS = 7
TARGETS = {("--version",): 0.5, ("status", "--json"): 0.6, ("--help",): 0.8}


def own_command() -> list[str]:
    script = Path(sys.executable).with_name("selfhost")
    return [str(script)] if script.exists() else [sys.executable, "-m", "selfhost"]


def install_ramalama() -> Path:
    folder = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "selfhost-benchmarks" / "ramalama"
    script = folder / "bin" / "ramalama"
    if not script.exists():
        venv.create(folder, with_pip=True, clear=True)
        subprocess.run([folder / "bin" / "python", "-m", "pip", "install", "--quiet", "ramalama"], check=True)
    return script


def seconds(argv: list[str], env: dict[str, str]) -> float:
    started = time.perf_counter()
    subprocess.run(argv, env=env, check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, timeout=60)
    return time.perf_counter() - started


def measure(ramalama: Path, *, runs: int) -> dict[str, object]:
    commands = {"ramalama version": [str(ramalama), "version"]}
    commands |= {f"selfhost {' '.join(words)}": [*own_command(), *words] for words in TARGETS}
    times: dict[str, list[float]] = {name: [] for name in commands}
    with tempfile.TemporaryDirectory() as empty:
        places = {f"XDG_{kind}_HOME": f"{empty}/{kind}" for kind in ("STATE", "CACHE", "CONFIG", "DATA")}
        env = {**os.environ, "HOME": empty, **places, "PYTHONPATH": str(Path(__file__).parent.parent)}
        for turn in range(runs + 1):
            for name, argv in commands.items():
                took = seconds(argv, env)
                if turn:  # the first turn only warms the file cache
                    times[name].append(took)
    medians = {name: statistics.median(values) for name, values in times.items()}
    base = medians["ramalama version"]
    rows = {
        f"selfhost {' '.join(words)}": {
            "seconds": round(medians[f"selfhost {' '.join(words)}"], 4),
            "ratio": round(medians[f"selfhost {' '.join(words)}"] / base, 3),
            "target": target,
            "met": medians[f"selfhost {' '.join(words)}"] <= target * base,
        }
        for words, target in TARGETS.items()
    }
    return {"runs": runs, "ramalama version": {"seconds": round(base, 4)}, "commands": rows}


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--ramalama", type=Path, help="the executable of an installed ramalama")
    parser.add_argument("--runs", type=int, default=RUNS)
    asked = parser.parse_args()
    result = measure(asked.ramalama or install_ramalama(), runs=asked.runs)
    print(json.dumps(result, indent=2))
    commands = result["commands"]
    return 0 if isinstance(commands, dict) and all(row["met"] for row in commands.values()) else 1


if __name__ == "__main__":
    sys.exit(main())
