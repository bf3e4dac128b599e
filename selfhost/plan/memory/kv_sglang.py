"""SGLang's pools: what a token costs, and how the static memory is shared (pool_configurator.py of 0.5.23)."""

import math
from dataclasses import dataclass

from selfhost.plan.memory.pages import (
    WIDTH,
    attention_ranks,
    form_of,
    full_cell,
    indexer_cell,
    state_bytes,
    window_cell,
)
from selfhost.plan.memory.question import Question
from selfhost.shapes.geometry import Geometry, Window

WINDOW_SHARE = 0.8
"""swa_full_tokens_ratio: tokens of the windowed layers' pool for each token of the full one."""
STATE_RATIO = 0.9
"""mamba_full_memory_ratio: memory of the states for each byte of the token pool."""
NARROW = 512
"""Tokens of a window."""
STATES_PER_REQUEST = 3
"""State slots that a running request takes at least (mem_cache/kv_cache_configurator.py)."""
FIRST_REQUESTS, MOST_REQUESTS = 2048, 4096


@dataclass(frozen=True, slots=True, kw_only=True)
class SglangPools:
    tokens: int
    """max_total_num_tokens: that of the full layers' pool."""
    kv_bytes: int
    """Of all token pools."""
    state_bytes: int
    """Of the state pool."""
    slots: int
    requests: int
    """max_running_requests on one attention rank."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SglangCache:
    cell: float
    """Bytes of one token over all layers; windowed layers by their share."""
    raw: int
    """Bytes of one token in the layers that look back at everything."""
    state: int
    """Bytes of one state slot over all recurrent layers."""
    page: int
    exact: bool
    question: Question

    def pools(self, rest: int) -> SglangPools:
        """`rest`: what the weights leave of the static memory."""
        slots, states = self._slots(rest)
        room = rest - states
        tokens = int(room / self.cell) // self.page * self.page if self.cell and room > 0 else 0
        return SglangPools(
            tokens=tokens,
            kv_bytes=int(tokens * self.cell),
            state_bytes=states,
            slots=slots,
            requests=self._requests(tokens, slots),
        )

    def least(self, length: int) -> int:
        """What must be left for one request of `length` tokens to run."""
        tokens = int(length * self.cell)
        if not self.state:
            return tokens
        if self.question.mamba_slots:
            return tokens + (self.question.mamba_slots + 1) * self.state
        states = (STATES_PER_REQUEST + 1) * self.state
        return math.ceil(max(tokens * (1 + STATE_RATIO), states * (1 + STATE_RATIO) / STATE_RATIO)) + 1

    def _slots(self, rest: int) -> tuple[int, int]:
        if not self.state or rest <= 0:
            return 0, 0
        half = int((rest * STATE_RATIO / (1 + STATE_RATIO) - self.state) // self.state)
        slots = self.question.mamba_slots or max(0, half)
        return slots, (slots + 1) * self.state  # one more pads the pool

    def _requests(self, tokens: int, slots: int) -> int:
        context = self.question.context or self.question.native or tokens or 1
        most = max(FIRST_REQUESTS, min(MOST_REQUESTS, int(tokens / context * 512)))
        asked = self.question.max_seqs
        data = self.question.spread.attention_data
        most = min(max(1, asked // data) if asked else most, tokens // 2)
        return min(most, slots // STATES_PER_REQUEST) if self.state else most


def sglang_cache(question: Question) -> SglangCache:
    shape = question.geometry
    stages = question.spread.pipeline
    full = full_cell(question) * (shape.full_layers + question.draft_layers) / stages
    full += indexer_cell(shape) * (shape.full_layers + question.draft_layers) / stages
    windows = window_cell(question) * shape.sliding_layers / stages
    if not _two_pools(shape):
        full, windows = full + windows, 0.0
    state = 0
    if shape.state and shape.linear_layers:
        state = shape.linear_layers * state_bytes(
            shape.state,
            ranks=attention_ranks(question.spread),
            width=WIDTH.get(question.computed, 2),
            ssm_bytes=4,  # SGLang keeps the recurrent part in FP32 unless told otherwise
        )
    return SglangCache(
        cell=full + WINDOW_SHARE * windows if full else windows,
        raw=int(full or windows),
        state=state // stages,
        page=question.block_size or 1,
        exact=shape.exact and form_of(question.kv, question.computed).known,
        question=question,
    )


def _two_pools(shape: Geometry) -> bool:
    """Whether windowed layers have a pool of their own: by architecture in the engine, known here by their shape.

    Llama 4 (chunks), Gemma 4 (two head sizes) and models with narrow windows (GPT-OSS) have; Gemma 2, Gemma 3 and
    OLMo 3 keep everything in one pool (configs/model_config.py).
    """
    return shape.window_kind is Window.CHUNKED or bool(shape.full_head_dim) or shape.window < NARROW
