"""`up` that is killed at a chosen moment."""

import json
import os
import signal
import threading
import time


def kill_at(world, moment, words=()) -> str:
    """Start `up`, or `words`, and kill its session when `moment(elapsed_s, step)` says so; return its step."""
    process = world.start(*(words or world.up_words()))
    steps: list[str] = ["start"]

    def read():
        whole = (line for line in process.stderr if line.startswith("{") and line.endswith("}\n"))
        steps.extend(json.loads(line)["step"] for line in whole)

    reader = threading.Thread(target=read, daemon=True)
    reader.start()
    began = time.monotonic()
    while process.poll() is None and not moment(time.monotonic() - began, steps[-1]):
        time.sleep(0.002)
    if process.poll() is None:
        os.killpg(process.pid, signal.SIGKILL)
    process.wait(timeout=30)
    process.stdout.close()
    reader.join(timeout=30)
    process.stderr.close()
    return steps[-1]


def at_time(limit_s: float):
    return lambda elapsed_s, _: elapsed_s >= limit_s


def at_step(step: str, delay_s: float):
    seen: list[float] = []

    def moment(elapsed_s, now):
        if now == step and not seen:
            seen.append(elapsed_s)
        return bool(seen) and elapsed_s >= seen[0] + delay_s

    return moment
