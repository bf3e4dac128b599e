"""Blocks, need and longest length against vLLM's own planning code, for every shape of the catalog."""

import itertools
import json
import os
import subprocess
from typing import Any

import pytest

from selfhost.models.catalog import CatalogRow, rows
from selfhost.plan.memory.groups import Kind
from selfhost.plan.memory.kv_vllm import VllmCache, vllm_cache
from selfhost.plan.memory.question import Question, Room, Spread, Weights
from selfhost.shapes.geometry import Recurrence

NAMED = os.environ.get("SELFHOST_TEST_ENGINE_PYTHON", "")
BATCH = 2048

SCRIPT = """
import importlib.util, json, sys
from types import SimpleNamespace as Some
import torch, vllm
from vllm.v1 import kv_cache_interface as specs
from vllm.v1.kv_cache_layout import KVCacheLayout
split = importlib.util.find_spec("vllm.v1.core.kv_cache_planning") is not None
if split:
    from vllm.v1.core import kv_cache_planning as planning
    first = (planning.DefaultKVCacheConfigBuilder(),)
else:
    from vllm.v1.core import kv_cache_utils as planning
    first = ()
layout = next(one for one in KVCacheLayout if not one.is_block_outermost)

def made(kind):
    about = dict(kind)
    name = about.pop("spec")
    if name == "MambaSpec":
        about.update(shapes=((about.pop("state"),),), dtypes=(torch.uint8,))
    else:
        about["dtype"] = torch.bfloat16 if about.pop("width") == 2 else torch.uint8
    return getattr(specs, name)(**about)

answers = []
for case in json.load(sys.stdin):
    layers, config = {}, Some(
        model_config=Some(max_model_len=case["length"], original_max_model_len=case["length"]),
        parallel_config=Some(decode_context_parallel_size=1, tensor_parallel_size=1),
        cache_config=Some(mamba_cache_mode=case["mode"], num_gpu_blocks_override=None,
                          get_resolved_kv_cache_layout=lambda: layout, prefix_cache_retention_interval=None),
        scheduler_config=Some(disable_hybrid_kv_cache_manager=False), attention_config=Some(hisparse_config=None),
        speculative_config=None, max_in_flight_tokens=case["in_flight"])
    for count, kind in case["kinds"]:
        for _ in range(count):
            layers[str(len(layers))] = made(kind)
    groups = planning.get_kv_cache_groups(config, layers)
    block = planning._pool_bytes_per_block(config, groups)
    need = planning._max_memory_usage_bytes_from_groups(*first, config, groups)
    longest = planning._estimate_max_model_len_from_groups(*first, config, groups, int(need * case["share"]) - block)
    answers.append([block, need, longest])
print(json.dumps({"version": vllm.__version__, "answers": answers}))
"""


def python(engine_python: object) -> str:
    if NAMED and os.path.exists(NAMED):
        return NAMED
    if engine_python:
        return str(engine_python)
    message = "no Python with vLLM: `make up` installs one, or set SELFHOST_TEST_ENGINE_PYTHON"
    if os.environ.get("CI"):
        pytest.fail(message)
    pytest.skip(message)


def asked(row: CatalogRow, ranks: int, kv: str, *, prefixes: bool, length: int) -> Question:
    return Question(
        engine="vllm", version="0.32.0", backend="cuda", geometry=row.geometry, weights=Weights(resident=1),
        room=Room(name="a card", total=2**36, arch="sm_89"), spread=Spread(tensor=ranks), kv=kv, context=length,
        batch_tokens=BATCH, prefix_caching=prefixes,
    )  # fmt: skip


def kinds(question: Question, cache: VllmCache) -> list[tuple[int, dict[str, Any]]]:
    """The layers as the engine's own specs; only block size and state bytes come from our side."""
    shape, ranks, width = question.geometry, question.spread.tensor, 2 if question.kv == "auto" else 1
    block = cache.block_tokens if shape.linear_layers or shape.latent else 16
    found: list[tuple[int, dict[str, Any]]] = []
    if shape.latent:
        head = shape.latent.rank + shape.latent.rope
        spec = {"spec": "MLAAttentionSpec", "block_size": block, "num_kv_heads": 1, "head_size": head, "width": width}
        found.append((shape.full_layers, spec))
        if shape.latent.indexer_bytes:
            found.append((shape.full_layers, {**spec, "head_size": shape.latent.indexer_bytes, "width": 1}))
    elif shape.full_layers:
        heads = max(1, (shape.full_kv_heads or shape.kv_heads) // ranks)
        found.append(
            (shape.full_layers, {"spec": "FullAttentionSpec", "block_size": block, "num_kv_heads": heads,
                                 "head_size": shape.full_head_dim or shape.head_dim, "width": width})
        )  # fmt: skip
    if shape.sliding_layers:
        chunked = shape.window_kind.value == "chunked"
        found.append(
            (shape.sliding_layers, {"spec": "ChunkedLocalAttentionSpec" if chunked else "SlidingWindowSpec",
                                    "attention_chunk_size" if chunked else "sliding_window": shape.window,
                                    "block_size": 16, "num_kv_heads": max(1, shape.kv_heads // ranks),
                                    "head_size": shape.head_dim, "width": width})
        )  # fmt: skip
    if shape.state:
        state = next(kind for kind in cache.grouping.kinds if kind.kind is Kind.STATE)
        found.append(
            (shape.linear_layers, {"spec": "MambaSpec", "state": state.net, "block_size": block,
                                   "page_size_padded": state.page if state.page != state.net else None,
                                   "mamba_cache_mode": "align" if question.prefix_caching else "none",
                                   "num_prefill_checkpoint_blocks": int(shape.state.kind is Recurrence.MAMBA2)})
        )  # fmt: skip
    return found


@pytest.mark.vllm
def test_every_shape_is_planned_as_the_engine_plans_it(engine_python: object) -> None:
    variants = itertools.product(rows(), (1, 2, 4), ("auto", "fp8"), (True, False), ((4096, 0.7), (100_001, 1.3)))
    cases, ours = [], []
    for row, ranks, kv, prefixes, (length, share) in variants:
        if kv == "fp8" and row.geometry.latent and row.geometry.latent.indexer_bytes:
            continue  # packed into rows of 656 bytes by the attention kernel, not by the planning
        question = asked(row, ranks, kv, prefixes=prefixes, length=length)
        cache = vllm_cache(question, (0, 32, 0))
        cases.append(
            {"length": length, "share": share, "mode": "align" if prefixes else "none", "in_flight": 2 * BATCH,
             "kinds": kinds(question, cache)}
        )  # fmt: skip
        need = cache.said_need(length)
        ours.append([cache.block_bytes, need, cache.longest(int(need * share), length)])
    done = subprocess.run(
        [python(engine_python), "-W", "ignore", "-c", SCRIPT], input=json.dumps(cases), capture_output=True, text=True,
        timeout=240, check=False, env={**os.environ, "VLLM_LOGGING_LEVEL": "ERROR"},
    )  # fmt: skip
    assert done.returncode == 0, done.stderr[-2000:]
    answers = json.loads(done.stdout.splitlines()[-1])["answers"]
    assert len(cases) > 800
    assert [(case, own, real) for case, own, real in zip(cases, ours, answers, strict=True) if own != real] == []
