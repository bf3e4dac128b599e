"""Tokens of one of vLLM's blocks, and the pages that recurrent layers take of them (platforms/interface.py)."""

import math
from dataclasses import replace

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
from selfhost.plan.memory.releases import Release
from selfhost.shapes.geometry import Recurrence

GPU_BLOCK, CPU_BLOCK, CPU_LATENT_BLOCK, XPU_BLOCK, SPARSE_BLOCK = 16, 128, 16, 64, 64
"""Tokens of a block where nobody says (platforms/{interface,cpu}.py; FlashAttention on XPU; FlashMLA for DSA)."""
LATENT_ALIGNMENT, LATENT_ALIGNMENT_SINCE = 128, (0, 20)
"""Recurrent models with latent attention round their block to it."""
PREFIXES_SINCE: Release = (0, 28)
"""Recurrent models keep prefixes unless told otherwise from about here on (vllm-project/vllm#50991, August 2026)."""
MAMBA_CHECKPOINT_SINCE: Release = (0, 32)
GDN_CHECKPOINT_SINCE, GDN_ALIGNMENT = (0, 33), 64
"""A page more for the state in the middle of a prompt, where prefixes are kept: of Mamba-2 layers, read in 0.32.0; of
GDN layers where FlashInfer computes the prompt, whose blocks are then multiples of 64, read in 0.33.0
(layers/mamba/{mamba_mixer2,gdn/qwen_gdn_linear_attn}.py)."""
FLASHINFER_ARCHS = ("sm_90", "sm_10", "sm_12")
FLASHINFER_KEYS = 128
"""Width of a key head that its kernel takes."""
WINDOWS_KEPT = "sliding_window"
"""What --kv-cache-dtype-skip-layers calls all windowed layers."""


def plain_block(question: Question) -> int:
    """Before any alignment."""
    if question.block_size:
        return question.block_size
    if question.backend == "cpu":
        return CPU_LATENT_BLOCK if question.geometry.latent else CPU_BLOCK
    if question.backend == "xpu":
        return XPU_BLOCK
    return SPARSE_BLOCK if indexer_cell(question.geometry) else GPU_BLOCK


def block_and_state(question: Question, version: Release) -> tuple[int, int]:
    """Tokens of a block, and the bytes of one state: attention pages grow until a state fits into one."""
    shape = question.geometry
    block = plain_block(question)
    if keeps_some(question) and shape.full_layers:  # a page must hold the smallest block of the 16-bit layers
        block *= math.ceil(_largest_kept(question) * GPU_BLOCK / (block * full_cell(question)))
    if not shape.state or not shape.linear_layers:
        return block, 0
    page = state_bytes(
        shape.state,
        ranks=attention_ranks(question.spread),
        spec_tokens=question.spec_tokens,
        width=WIDTH.get(question.computed, 2),
        ssm_bytes=4 if shape.state.kind is Recurrence.KDA else 0,
    )
    if not shape.full_layers:
        return block, page
    alignment = _alignment(question, version, block)
    return max(block, alignment * math.ceil(page / (alignment * full_cell(question)))), page


def _alignment(question: Question, version: Release, block: int) -> int:
    if question.geometry.latent and version >= LATENT_ALIGNMENT_SINCE:
        block = max(block, LATENT_ALIGNMENT)
    if keeps_prefixes(question, version) and _gdn_checkpoint(question, version):
        block = math.lcm(block, GDN_ALIGNMENT)
    return block


def states_of_one(question: Question, version: Release) -> int:
    """Pages of one sequence: its own, one per draft token, one to keep prefixes, and one inside of prompts."""
    pages = 1 + question.spec_tokens
    if not keeps_prefixes(question, version):
        return pages
    state = question.geometry.state
    mamba = state is not None and state.kind is Recurrence.MAMBA2 and version >= MAMBA_CHECKPOINT_SINCE
    return pages + 1 + (mamba or _gdn_checkpoint(question, version))


def keeps_prefixes(question: Question, version: Release) -> bool:
    return version >= PREFIXES_SINCE if question.prefix_caching is None else question.prefix_caching


def _gdn_checkpoint(question: Question, version: Release) -> bool:
    state = question.geometry.state
    if state is None or state.kind is not Recurrence.GDN or version < GDN_CHECKPOINT_SINCE:
        return False
    hopper = question.room.arch.startswith(FLASHINFER_ARCHS[0])
    fits = hopper or (question.room.arch.startswith(FLASHINFER_ARCHS) and state.state == FLASHINFER_KEYS)
    return question.backend == "cuda" and fits


def kept_full(question: Question) -> int:
    """Full layers with a 16-bit cache beside a smaller one: named by their number, or at both ends."""
    named = sum(1 for layer in question.kv_skip_layers if layer.isdigit())
    edges = 0 if question.geometry.linear_layers else 2 * form_of(question.kv, question.computed).edge_layers
    return min(max(named, edges), question.geometry.full_layers)


def keeps_some(question: Question) -> bool:
    return bool(kept_full(question) or WINDOWS_KEPT in question.kv_skip_layers)


def unquantized(question: Question) -> Question:
    return replace(question, kv="auto")


def _largest_kept(question: Question) -> int:
    """Bytes of one token in the largest layer whose cache stays 16-bit."""
    plain = unquantized(question)
    full = full_cell(plain) if kept_full(question) else 0
    return max(full, window_cell(plain) if WINDOWS_KEPT in question.kv_skip_layers else 0)
