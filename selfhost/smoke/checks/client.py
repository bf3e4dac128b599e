"""SM02x: the line that `up` prints works as printed."""

import sys

from selfhost.smoke.capability import Capability
from selfhost.smoke.check import Failed, Passed, Skipped, Undecided, Verdict, check
from selfhost.smoke.client_line import ASK, openai_line, sampling
from selfhost.smoke.excerpt import excerpt
from selfhost.smoke.exhausted import exhausted
from selfhost.smoke.probe import Probe


@check(
    "SM020",
    "the official openai client works exactly as printed",
    group="client",
    needs=("SM101", "SM110"),
    budget_s=120,
)
def client_works(probe: Probe, _: Capability) -> Verdict:
    """The printed line runs in a Python of its own; the key stays in its file.

    `-P`: a file of the user's, such as tempfile.py, in the folder where this runs is not taken for Python's own.
    """
    if probe.key and probe.endpoint.key is None:
        return Skipped(reason="the key is in no file that the line could read")
    line = openai_line(probe.endpoint)
    done = probe.system.run([sys.executable, "-P", "-c", line], timeout_s=probe.clock.left_s())
    said = done.stdout.strip()
    if done.ok and said and said != "None":
        return Passed(note=excerpt(said))
    if done.ok:
        return _empty(probe, line)
    if "No module named 'openai'" in done.stderr:
        return Skipped(reason="the openai package is not installed beside selfhost")
    last = "ran out of time" if done.timed_out else (done.stderr.strip().splitlines() or [f"exit {done.rc}"])[-1]
    return Failed(
        what="the official openai client does not work as printed",
        why="Other clients of this protocol will have the same trouble.",
        evidence=f"{line}\n{last[:300]}",
    )


def _empty(probe: Probe, line: str) -> Verdict:
    """The line works and prints nothing: a budget spent on thinking, or an answer that is not there."""
    if not probe.endpoint.chat:
        return Undecided(reason="the line works; the model goes on with nothing")
    answer = probe.chat(ASK, **{"temperature": None, "seed": None, **sampling(probe.endpoint)})
    if answer.exhausted:
        return Undecided(
            reason="the line works; all tokens went into thinking", finding=exhausted(answer, probe.endpoint)
        )
    return Failed(
        what="the official client printed no answer",
        why="message.content was empty for the line that `up` prints.",
        evidence=line,
    )
