"""Init container: waits until the fetch job has marked the weights on the volume as complete."""

import json
import os
import signal
import sys
import time
from pathlib import Path

signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))  # the first process of a container ignores it otherwise
marker = Path(sys.argv[1]) / ".selfhost-complete"
text = os.environ["SELFHOST_WANTED"]
wanted = json.loads(text)
limit = int(os.environ["SELFHOST_SECONDS"])
told = -1.0
start = time.monotonic()
while True:
    there = marker.read_text().splitlines() if marker.exists() else []
    for line in map(json.loads, there):
        if line.get("wanted") == wanted:
            print(f"the weights are there, commit {line['commit']}: {text}", flush=True)
            sys.exit(0)
    waited = time.monotonic() - start
    if waited >= limit:
        held = ", ".join(there) or "no weights"
        sys.exit(f"after {limit} s the volume holds {held}, wanted is {text}: see the fetch job's log")
    if told < 0 or waited - told >= 30:
        told = waited
        print(f"waiting for the fetch job, {waited:.0f} of {limit} s: {text}", flush=True)
    time.sleep(2)
