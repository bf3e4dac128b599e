"""Run the README's session for real and put its output between the markers. Needs minutes the first time."""

import os
import re
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
README = ROOT / "README.md"
NAME = "smollm2-135m"
CURL_LIMIT = 400


def session(shown: str, *argv: str, limit: int | None = None) -> str:
    """One command and what it prints, with the home folder as `~`."""
    env = {**os.environ, "NO_COLOR": "1", "COLUMNS": "110"}
    done = subprocess.run(argv, capture_output=True, text=True, env=env, check=False)
    if done.returncode != 0:
        sys.exit(f"{shown} ended with {done.returncode}:\n{done.stderr}")
    text = (done.stderr + done.stdout).strip().replace(str(Path.home()), "~")
    if limit is not None and len(text) > limit:
        text = text[:limit] + "…"
    return f"```console\n$ {shown}\n{text}\n```"


def put(text: str, name: str, block: str) -> str:
    pattern = re.compile(rf"(<!-- session: {name} -->\n).*?(<!-- /session -->)", re.DOTALL)
    found, count = pattern.subn(lambda m: m[1] + block + "\n" + m[2], text)
    if count != 1:
        sys.exit(f"README.md has no place for the session `{name}`")
    return found


def main() -> None:
    selfhost = (sys.executable, "-m", "selfhost")
    text = README.read_text()
    text = put(text, "up", session("make up", *selfhost, "up", "--device", "cpu", "--yes", "--progress", "plain"))
    key = Path.home() / f".local/state/selfhost/deployments/{NAME}/key.header"
    body = f'{{"model": "{NAME}", "messages": [{{"role": "user", "content": "What is the capital of France?"}}]}}'
    curl = ("curl", "-s", "http://127.0.0.1:8000/v1/chat/completions", "-H", f"@{key}", "-H",
            "Content-Type: application/json", "-d", body)  # fmt: skip
    shown = (
        f"curl -s http://127.0.0.1:8000/v1/chat/completions -H @$HOME{str(key).removeprefix(str(Path.home()))} \\\n"
        f"    -H 'Content-Type: application/json' -d '{body}'"
    )
    text = put(text, "curl", session(shown, *curl, limit=CURL_LIMIT))
    text = put(text, "status", session("selfhost status", *selfhost, "status"))
    text = put(text, "plan", session(f"selfhost plan {NAME}", *selfhost, "plan", NAME, "--device", "cpu"))
    text = put(text, "down", session("selfhost down", *selfhost, "down", NAME))
    README.write_text(text)


if __name__ == "__main__":
    main()
