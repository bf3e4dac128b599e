"""The answer of `selfhost fit` in words: the verdict, what there is room for, the parts, how fast at best, ways out."""

from collections.abc import Iterator, Sequence

from selfhost.core.columns import columns
from selfhost.engines.names import shown
from selfhost.plan.claims import Speed, claim_words, floor_words
from selfhost.plan.decide import Decided
from selfhost.plan.memory.question import Answer
from selfhost.plan.ways_out import Way
from selfhost.shapes.plan import Verdict
from selfhost.shapes.units import GIB, KIB, format_bytes, format_tokens


def describe(decided: Decided, *, speed: Speed | None, ways: Sequence[Way], explain: bool) -> str:
    """For stdout; ends with the verdict, as `plan` does."""
    blocks = [_head(decided), "\n".join(f"  {line}" for line in columns(list(_rows(decided, speed))))]
    if explain:
        blocks.append("\n".join(f"  {line}" for line in columns(list(_arithmetic(decided)))))
        blocks.append("\n".join(f"  {note}" for note in decided.answer.notes))
    if ways:
        blocks.append("ways out, each computed\n" + "\n".join(_way(way) for way in ways))
    plan = decided.plan
    blocks.append(f"{plan.verdict.value}: {decided.answer.why}")
    return "\n\n".join(block for block in blocks if block)


def _head(decided: Decided) -> str:
    plan, spread = decided.plan, decided.question.spread
    parts = [
        f"{name} {size}"
        for name, size in (("TP", spread.tensor), ("PP", spread.pipeline), ("DP", spread.data))
        if size > 1
    ]
    how = f" ({', '.join(parts)})" if parts else ""
    return f"{plan.model.served_name} on {plan.device_name}{how} · {shown(plan.build.engine)} {plan.build.version}"


def _rows(decided: Decided, speed: Speed | None) -> Iterator[tuple[str, str]]:
    plan, answer = decided.plan, decided.answer
    weights, kv = plan.decision("precision"), plan.decision("KV cache")
    if weights is not None:
        yield "weights", f"{weights.value} · {weights.reason}"
    if kv is not None:
        yield "KV cache", kv.value
    if plan.verdict is not Verdict.DOES_NOT_FIT:
        yield "context", _context(decided)
        yield "at once", _at_once(decided)
    if answer.kv_tokens:
        yield "a token", _token(answer)
    yield "memory", memory_line(answer, total=decided.question.room.total, on_cpu=not decided.cards)
    if speed is not None and speed.bandwidth and plan.verdict is not Verdict.DOES_NOT_FIT:
        for one in speed.floors:
            yield (
                "decode",
                floor_words(
                    one,
                    speed.share,
                    bandwidth=speed.bandwidth,
                    ranks=decided.question.spread.ranks,
                    sparse=bool(speed.traffic.count),
                ),
            )
    if speed is not None and speed.claim is not None:
        yield "claim", claim_words(speed.claim, int(speed.claim.implied / speed.claim.rate))
    yield "how known", _evidence(decided)


def _context(decided: Decided) -> str:
    answer, plan = decided.answer, decided.plan
    if not answer.longest and plan.verdict is Verdict.TOO_CLOSE:
        return f"{format_tokens(plan.context)} planned; how long a request may be at most is unknown"
    longest = f"{format_tokens(answer.longest)} at most for one request"
    native = decided.question.native
    whole = ", all that the model knows" if native is not None and answer.longest >= native else ""
    return f"{format_tokens(plan.context)} planned; {longest}{whole}"


def _at_once(decided: Decided) -> str:
    answer, plan = decided.answer, decided.plan
    if not answer.kv_tokens and not answer.raw_bytes_per_token:
        return f"{plan.concurrency:,} at once, the rest wait; no layer's cache grows with tokens"
    return (
        f"{answer.concurrency:,.2f} requests at {format_tokens(plan.context)} tokens · "
        f"{format_tokens(answer.kv_tokens)} tokens in all · {plan.concurrency:,} at once, the rest wait"
    )


def _token(answer: Answer) -> str:
    raw, effective = answer.raw_bytes_per_token, answer.effective_bytes_per_token
    if not raw:
        return f"0 KiB raw, all is state of a fixed size; {effective / KIB:.2f} KiB effective"
    more = effective / raw - 1
    gaps = ", ".join(f"{gap.name} {gap.share:+.2%}" for gap in answer.gaps if abs(gap.share) >= 0.00005)
    words = f"{raw / KIB:.1f} KiB raw, {effective / KIB:.2f} KiB effective ({more:+.2%})"
    return f"{words}: {gaps}" if gaps else words


def memory_line(answer: Answer, *, total: int, on_cpu: bool = False) -> str:
    """`7.5 weights + 2.1 activations + 0.3 outside torch + 0.9 graphs + 10.8 KV = 21.6 of 23.5 GiB`.

    Where nothing is left for it, without the KV cache.
    """
    parts = (
        ("weights", answer.weights),
        ("engine" if on_cpu else "activations", answer.activation_peak),
        ("outside torch", answer.non_torch),
        ("graphs", answer.graphs),
        ("KV", max(0, answer.kv_available)),
    )
    shown_parts = [(name, round(size / GIB, 1)) for name, size in parts if size]
    total_words = f"{sum(size for _, size in shown_parts):.1f} of {total / GIB:.1f} GiB"
    before = ", before any KV cache" if answer.kv_available < 0 else ""
    return f"{' + '.join(f'{size:.1f} {name}' for name, size in shown_parts)} = {total_words}{before}"


def _evidence(decided: Decided) -> str:
    answer = decided.answer
    count = answer.measured_runs
    runs = f"{count} measured run{'s' if count > 1 else ''}" if count else "no measured run"
    exact = "the engine's own arithmetic" if answer.exact_kv else "an estimate, by the nearest known form"
    where = f"{shown(decided.question.engine)} on {decided.question.room.arch or 'the CPU'}"
    build = decided.plan.build
    newer = (
        "" if build.verified else f"; {shown(build.engine)} {build.version} is newer than all known: unverified version"
    )
    words = f"from KV bytes to tokens {exact}; overhead by {runs} of {where}, within {format_bytes(answer.margin)}"
    return words + newer


def _arithmetic(decided: Decided) -> Iterator[tuple[str, str]]:
    answer = decided.answer
    yield "planned with", f"{answer.requested:,} B of {decided.question.room.total:,} B"
    yield "weights", f"{answer.weights:,} B"
    yield "activation peak", f"{answer.activation_peak:,} B"
    yield "outside torch", f"{answer.non_torch:,} B"
    yield "graphs", f"{answer.graphs:,} B before the cache is sized, {answer.graphs_after:,} B after"
    yield "KV cache", f"{answer.kv_available:,} B"
    if answer.kv_needed is not None and answer.context is not None:
        yield "needed", f"{answer.kv_needed:,} B for one request of {format_tokens(answer.context)} tokens"
    if answer.block_tokens:
        yield "blocks", f"{answer.blocks:,} of {answer.block_tokens:,} tokens"
    if answer.state_bytes:
        yield "state", f"{answer.state_bytes:,} B for each sequence, whatever its length"
    for unknown in answer.unknowns:
        yield "unknown", unknown


def _way(way: Way) -> str:
    room = f"{format_tokens(way.plan.context)} tokens of context, {way.plan.concurrency} at once"
    return f"  {way.words}: {room}\n      {way.command}"
