"""Run the README's commands for real and put its output between the markers. Needs minutes the first time."""

import json
import os
import re
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
README = ROOT / "README.md"
CURL_LIMIT = 420
RENDER_LIMIT = 2400
QUESTION = "What is the capital of France?"


def run(*argv: str, says_no: bool = False) -> str:
    """What a person would see in a terminal: both streams as they come. `says_no`: a check may end with 1."""
    env = {**os.environ, "NO_COLOR": "1", "COLUMNS": "110", "MAKEFLAGS": "--no-print-directory"}
    done = subprocess.run(argv, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, env=env, cwd=ROOT)
    if done.returncode not in ((0, 1) if says_no else (0,)):
        sys.exit(f"{' '.join(argv)} ended with {done.returncode}:\n{done.stdout}")
    return done.stdout.strip()


def block(shown: str, text: str, *, limit: int | None = None) -> str:
    clean = text.replace(str(ROOT), ".").replace(str(Path.home()), "/home/ana")
    if limit is not None and len(clean) > limit:
        clean = (clean[:limit].rsplit("\n", 1)[0] + "\n…") if "\n" in clean[:limit] else clean[:limit] + "…"
    return f"```console\n$ {shown}\n{clean}\n```"


def put(text: str, name: str, new: str) -> str:
    pattern = re.compile(rf"(<!-- output: {name} -->\n).*?(<!-- /output -->)", re.DOTALL)
    found, count = pattern.subn(lambda m: m[1] + new + "\n" + m[2], text)
    if count != 1:
        sys.exit(f"README.md has no place for the output of `{name}`")
    return found


def main() -> None:
    selfhost = (str(Path(sys.executable).with_name("selfhost")),)
    text = put(README.read_text(), "up", block("make up", run("make", "up")))
    found = json.loads(run(*selfhost, "status", "--json"))["deployments"][0]
    name, url = found["name"], found["url"]
    header = f".local/state/selfhost/deployments/{name}/key.header"
    body = json.dumps({"model": found["model"], "messages": [{"role": "user", "content": QUESTION}], "temperature": 0})
    json_type = "Content-Type: application/json"
    answer = run(
        "curl", "-s", f"{url}/chat/completions", "-H", f"@{Path.home() / header}", "-H", json_type, "-d", body
    )  # fmt: skip
    shown = f"curl -s {url}/chat/completions -H @$HOME/{header} \\\n    -H '{json_type}' \\\n    -d '{body}'"
    text = put(text, "curl", block(shown, answer, limit=CURL_LIMIT))
    text = put(text, "status", block("selfhost status", run(*selfhost, "status")))
    plan = run(*selfhost, "plan", found["model"], "--device", "cpu")
    text = put(text, "plan", block(f"selfhost plan {found['model']} --device cpu", plan))
    fit = ("fit", "qwen3-32b", "--gpu", "RTX 4090")
    shown = 'selfhost fit qwen3-32b --gpu "RTX 4090"'
    text = put(text, "fit", block(shown, run(*selfhost, *fit, says_no=True)))
    text = put(text, "doctor", block("selfhost doctor", run(*selfhost, "doctor", says_no=True)))
    example = "docs/examples/two-masks.yaml"
    text = put(text, "lint", block(f"selfhost lint {example}", run(*selfhost, "lint", example, says_no=True)))
    there = ("render", "compose", "qwen3-4b", "--host", "tests/snapshots/rtx4090.json")
    text = put(text, "render", block(f"selfhost {' '.join(there)}", run(*selfhost, *there), limit=RENDER_LIMIT))
    text = put(text, "down", block("selfhost down", run(*selfhost, "down", name)))
    README.write_text(text)


if __name__ == "__main__":
    main()
