"""The first selfhost.yaml of a machine: one service that works, and the other keys as comments."""

import json
import textwrap
from collections.abc import Sequence
from typing import Final

SCHEMA_FILE: Final = "selfhost-yaml.schema.json"


def starter(*, model: str, reason: str, cards: Sequence[tuple[str, str]]) -> str:
    """`cards` has an id and words for each usable card; without any, the service is for the CPU."""
    lines = [
        f"# yaml-language-server: $schema={SCHEMA_FILE}",
        f"# Your editor checks this file with:  selfhost init --schema > {SCHEMA_FILE}",
        "# What runs on this machine.  selfhost up  starts every service,  selfhost up NAME  one of them.",
        "version: 1",
        "services:",
        "  chat:",
        *(f"    # {line}" for line in textwrap.wrap(_comment(reason), 100)),
        f"    model: {json.dumps(model, ensure_ascii=False)}",
    ]
    if cards:
        lines += [f"    # {name}: {_comment(words)}" for name, words in cards]
        lines += [f"    devices: [{json.dumps(cards[0][0])}]"]
        lines += ["    # share: 0.45              # of the card's memory; needed when another service is on it too"]
    else:
        lines += ["    devices: cpu"]
    lines += [
        "    port: 8000",
        "    # context: 32k             # tokens of one request; without it the largest that fits",
        "    # concurrency: 8           # requests at the same time",
        "    # reasoning: off           # on, off, budget=2048, effort=low|medium|high",
        "    # precision: fp8           # or {weights: fp8, kv: auto}",
        "    # runtime: docker          # process, docker, podman, quadlet",
        "    # engine_args: [--max-num-batched-tokens, 4096]",
    ]
    return "\n".join(lines) + "\n"


def _comment(words: str) -> str:
    return " ".join(words.split())
