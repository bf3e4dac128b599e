"""The answer of `selfhost fit` as JSON, schema selfhost.fit/1. Bytes, tokens, seconds."""

import json
from collections.abc import Sequence
from dataclasses import asdict

from selfhost.plan.claims import Speed
from selfhost.plan.decide import Decided
from selfhost.plan.ways_out import Way
from selfhost.shapes.plan import Verdict

SCHEMA = "selfhost.fit/1"


def to_json(decided: Decided, *, speed: Speed | None, ways: Sequence[Way]) -> dict[str, object]:
    """Plain data; every size is of one rank."""
    plan, answer, question = decided.plan, decided.answer, decided.question
    body = {
        "schema": SCHEMA,
        "ok": plan.verdict is Verdict.FITS,
        "verdict": plan.verdict,
        "why": answer.why,
        "kind": "estimated",
        "model": {"ref": plan.model.ref, "id": plan.model.id, "served_name": plan.model.served_name},
        "engine": {"name": question.engine, "version": question.version, "backend": question.backend},
        "card": {"name": question.room.name, "arch": question.room.arch, "total": question.room.total,
                 "unified": question.room.unified, "count": question.spread.ranks},
        "spread": asdict(question.spread),
        "precision": {"weights": plan.weights_precision, "kv": plan.kv_precision},
        "context": plan.context,
        "longest_context": answer.longest,
        "concurrency": {"planned": plan.concurrency, "at_full_context": answer.concurrency},
        "kv": {
            "available": answer.kv_available,
            "needed": answer.kv_needed,
            "tokens": answer.kv_tokens,
            "raw_bytes_per_token": answer.raw_bytes_per_token,
            "effective_bytes_per_token": answer.effective_bytes_per_token,
            "gaps": [asdict(gap) for gap in answer.gaps],
            "blocks": answer.blocks,
            "block_tokens": answer.block_tokens,
            "state_bytes": answer.state_bytes,
            "exact": answer.exact_kv,
        },
        "memory": {
            "requested": answer.requested,
            "weights": answer.weights,
            "activation_peak": answer.activation_peak,
            "non_torch": answer.non_torch,
            "graphs": answer.graphs,
            "graphs_after": answer.graphs_after,
            "margin": answer.margin,
        },
        "measured_runs": answer.measured_runs,
        "notes": list(answer.notes),
        "unknowns": list(answer.unknowns),
        "decode": _decode(speed),
        "claim": asdict(speed.claim) | {"possible": speed.claim.possible} if speed and speed.claim else None,
        "ways_out": [
            {"kind": way.kind, "words": way.words, "command": way.command, "context": way.plan.context,
             "concurrency": way.plan.concurrency, "kv_tokens": way.plan.memory.kv_tokens}
            for way in ways
        ],
    }  # fmt: skip
    plain: dict[str, object] = json.loads(json.dumps(body, ensure_ascii=False))
    return plain


def _decode(speed: Speed | None) -> dict[str, object] | None:
    """The roofline: least seconds of one step, at both ends of the assumed share of the sheet's bandwidth."""
    if speed is None or not speed.bandwidth:
        return None
    return {
        "kind": "estimated",
        "bandwidth": speed.bandwidth,
        "share": asdict(speed.share),
        "floors": [
            {"concurrency": one.batch, "isl": one.context, "cache": "nothing cached", "bytes": one.read,
             "seconds": [one.best, one.worst], "tokens_per_second": list(one.rates)}
            for one in speed.floors
        ],
    }  # fmt: skip
