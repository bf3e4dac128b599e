"""How near the memory arithmetic comes to real starts: predictions against rows of public logs.

A row (one JSON object on a line) says engine, version, card, model, flags and what the engine's log showed; its form
is that of tests/cases/engine-memory-logs.jsonl. Definitions of what is printed:

covered                the model's geometry is known to the catalog, and the row states enough for one of the checks
                       below: a size of the KV cache with what the engine made of it, or card, share and outcome
geometry_exact_share   of the rows that state a size of the KV cache: the share where that size, rounded to 0.01 GiB as
                       the log has it, gives the stated tokens, need or largest length within 0.5 %; rows that leave
                       out the form of the KV cache, or max_num_batched_tokens where a request's need hangs on it
                       (windowed layers from vLLM 0.20 on), don't state what this takes, nor what tokens take
tokens_median_pct, tokens_p90_pct
                       error of the KV tokens from card, share and the row's `weights_gib` alone, in percent, over the
                       rows that state all of these and tokens
verdict_right_share    of the rows whose start succeeded or was refused for memory: the share where the verdict is the
                       same or `too close to call`; too_close_share is the share of the latter. The weights are the
                       row's own, or computed from the catalog's number of parameters

A share of the card that a row leaves out may have been passed: it counts as the engine's default only where the row's
flags say `defaults`.

With --json the last line of stdout is one JSON object; otherwise a table and the ten worst rows. Exit 0.
"""

import argparse
import json
import statistics
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import checkout  # noqa: F401
from planner_rows import Case, read

from selfhost.plan.memory.kv_sglang import sglang_cache
from selfhost.plan.memory.kv_vllm import BY_REQUEST_SINCE, vllm_cache
from selfhost.plan.memory.predict import predict
from selfhost.plan.memory.question import Answer, Question
from selfhost.plan.memory.releases import release
from selfhost.plan.memory.start_vllm import stages_apart
from selfhost.shapes.plan import Verdict
from selfhost.shapes.units import GIB

ROUNDED = 0.005 * GIB
"""Logs print two decimals."""
EXACT = 0.005
WORST = 10
FEW_AND_MANY = (2048, 16384)
"""Usual values of max_num_batched_tokens."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Result:
    """What the checks said of one row; None where one does not apply."""

    id: str
    uncovered: str = ""
    geometry: float | None = None
    tokens: float | None = None
    verdict: Verdict | None = None
    oom: bool | None = None
    detail: str = ""

    @property
    def right(self) -> bool | None:
        if self.verdict is None:
            return None
        return self.verdict is Verdict.TOO_CLOSE or (self.verdict is Verdict.DOES_NOT_FIT) == self.oom


def judge(case: Case) -> Result:
    if case.question is None:
        return Result(id=case.id, uncovered=case.why_not)
    answer = predict(case.question)
    settled = case.kv_said and (case.batch_said or not _by_batch(case.question))
    geometry = max(_geometry(case, case.question), default=None) if settled else None
    tokens = _tokens(case, answer) if settled else None
    verdict = answer.verdict if case.has_outcome else None
    if geometry is None and tokens is None and verdict is None:
        left_out = (
            "a size of the KV cache, or an outcome with card and share" if settled else "what its KV cache hangs on"
        )
        return Result(id=case.id, uncovered=f"does not state {left_out}")
    return Result(
        id=case.id,
        geometry=geometry,
        tokens=tokens,
        verdict=verdict,
        oom=case.oom,
        detail=f"KV {answer.kv_available / GIB:.2f} of {_gib(case.kv_bytes)}, {answer.kv_tokens:,} tokens of "
        f"{case.tokens or '?'}, {answer.verdict} of oom={case.oom}; {answer.measured_runs} measured runs of its kind"
        + (f"; the row says: {case.notes[:100]}" if case.notes else ""),
    )


def _gib(size: float | None) -> str:
    return "?" if size is None else f"{size / GIB:.2f} GiB"


def _geometry(case: Case, question: Question) -> Iterator[float]:
    """Error of each figure that follows from the stated size of the KV cache, its rounding allowed for."""
    if question.engine == "sglang":
        if case.kv_bytes and case.tokens:
            cell = sglang_cache(question).cell
            yield _off(case.tokens, (case.kv_bytes - ROUNDED) / cell, (case.kv_bytes + ROUNDED) / cell)
        return
    version = release("vllm", question.version)
    cache = vllm_cache(question, version)
    length = question.context or 1
    if case.kv_bytes and case.tokens:
        size = case.kv_bytes - stages_apart(question)  # the log line is that of the first stage
        low, high = (cache.blocks(int(size + change)) for change in (-ROUNDED, ROUNDED))
        yield _off(case.tokens, cache.tokens(low, length), cache.tokens(high, length))
    if case.needed:
        need = cache.said_need(length)
        yield _off(case.needed, need - ROUNDED, need + ROUNDED)
    if case.kv_bytes and case.longest:
        ends = (cache.longest(int(case.kv_bytes + change), length) for change in (-ROUNDED, ROUNDED))
        yield _off(case.longest, *ends)


def _by_batch(question: Question) -> bool:
    """Whether the size of a batch changes what one request takes (windows keep room for it)."""
    if question.engine == "sglang" or not question.geometry.sliding_layers:
        return False
    version = release("vllm", question.version)
    length = question.context or 1
    few, many = (
        vllm_cache(replace(question, batch_tokens=tokens), version).need_blocks(length) for tokens in FEW_AND_MANY
    )
    return version >= BY_REQUEST_SINCE and many > few * (1 + EXACT)


def _off(seen: float, low: float, high: float) -> float:
    """How far `seen` lies outside of what was computed, as a share of itself."""
    return max(low - seen, seen - high, 0.0) / seen if seen else 0.0


def _tokens(case: Case, answer: Answer) -> float | None:
    if not case.tokens or not case.weights_seen or not case.share_said or not case.card_said:
        return None
    return abs(answer.kv_tokens - case.tokens) / case.tokens


def summary(results: list[Result]) -> dict[str, float | int | None]:
    geometry = [one.geometry for one in results if one.geometry is not None]
    tokens = sorted(one.tokens for one in results if one.tokens is not None)
    verdicts = [one for one in results if one.verdict is not None]
    return {
        "rows": len(results),
        "covered": sum(not one.uncovered for one in results),
        "geometry_exact_share": _share([error <= EXACT for error in geometry]),
        "tokens_median_pct": round(100 * statistics.median(tokens), 3) if tokens else None,
        "tokens_p90_pct": round(100 * _quantile(tokens, 0.9), 3) if tokens else None,
        "verdict_right_share": _share([bool(one.right) for one in verdicts]),
        "too_close_share": _share([one.verdict is Verdict.TOO_CLOSE for one in verdicts]),
    }


def _share(hits: list[bool]) -> float | None:
    return round(sum(hits) / len(hits), 4) if hits else None


def _quantile(values: list[float], share: float) -> float:
    """Between the two neighbours, as most tools have it."""
    place = share * (len(values) - 1)
    low = int(place)
    high = min(low + 1, len(values) - 1)
    return values[low] + (values[high] - values[low]) * (place - low)


def load(path: Path) -> list[dict[str, Any]]:
    return [_row(line) for line in path.read_text(encoding="utf-8").splitlines() if line.strip()]


def _row(line: str) -> dict[str, Any]:
    try:
        row = json.loads(line)
    except ValueError:
        return {}
    return row if isinstance(row, dict) else {}


def judge_safely(row: dict[str, Any]) -> Result:
    """A row of odd form, or with sizes beyond all sense, is uncovered, never the end of the run."""
    try:
        case = read(row)
    except (ArithmeticError, AttributeError, LookupError, TypeError, ValueError) as error:
        return Result(id=str(row.get("id", "?")), uncovered=f"cannot be read: {type(error).__name__}: {error}")
    try:
        return judge(case)
    except (ArithmeticError, ValueError) as error:
        return Result(id=case.id, uncovered=f"cannot be computed: {type(error).__name__}: {error}")


def table(results: list[Result]) -> Iterator[str]:
    for name, value in summary(results).items():
        yield f"{name:22} {value}"
    yield ""
    yield f"the {WORST} worst rows:"
    ranked = sorted((one for one in results if not one.uncovered), key=_badness, reverse=True)
    for one in ranked[:WORST]:
        yield f"  {one.id:18} geometry {_percent(one.geometry)}  tokens {_percent(one.tokens)}  {one.detail}"
    yield ""
    yield "uncovered:"
    yield from (f"  {one.id:18} {one.uncovered}" for one in results if one.uncovered)


def _badness(one: Result) -> float:
    return (one.geometry or 0.0) * 10 + (one.tokens or 0.0) + (10.0 if one.right is False else 0.0)


def _percent(share: float | None) -> str:
    return "     —" if share is None else f"{100 * share:5.2f}%"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rows", type=Path, required=True, help="rows of logs, one JSON object on a line")
    parser.add_argument("--json", action="store_true", help="print one JSON object")
    asked = parser.parse_args()
    results = [judge_safely(row) for row in load(asked.rows)]
    print(json.dumps(summary(results)) if asked.json else "\n".join(table(results)))


if __name__ == "__main__":
    main()
