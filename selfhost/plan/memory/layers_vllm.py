"""The kinds of layers that own a cache, as vLLM's start sees them."""

from selfhost.plan.memory.blocks_vllm import (
    GPU_BLOCK,
    WINDOWS_KEPT,
    block_and_state,
    keeps_some,
    kept_full,
    plain_block,
    states_of_one,
    unquantized,
)
from selfhost.plan.memory.groups import Kind, Layers
from selfhost.plan.memory.pages import full_cell, indexer_cell, window_cell
from selfhost.plan.memory.question import Question
from selfhost.plan.memory.releases import Release
from selfhost.shapes.geometry import Window


def layers_of(question: Question, version: Release) -> tuple[Layers, ...]:
    shape = question.geometry
    block, state_page = block_and_state(question, version)
    kinds = list(_full(question, block))
    if shape.sliding_layers:
        kinds.append(_windowed(question, block if keeps_some(question) else plain_block(question)))
    if shape.linear_layers and shape.state:
        kinds.append(
            Layers(
                kind=Kind.STATE,
                count=shape.linear_layers,
                page=max(state_page, block * full_cell(question) if shape.full_layers else 0),
                block=block,
                net=state_page,
                states=states_of_one(question, version),
            )
        )
    return tuple(kinds)


def _full(question: Question, block: int) -> tuple[Layers, ...]:
    """Full layers, those whose cache stays 16-bit apart, and the caches of an indexer."""
    shape = question.geometry
    count, kept = shape.full_layers + question.draft_layers, kept_full(question)
    found = (
        (count - kept, full_cell(question)),
        (kept, full_cell(unquantized(question))),
        (count if indexer_cell(shape) else 0, indexer_cell(shape)),
    )
    return tuple(_growing(layers, per_token, block) for layers, per_token in found if layers)


def _growing(count: int, per_token: int, block: int) -> Layers:
    return Layers(kind=Kind.FULL, count=count, page=block * per_token, block=block, net=block * per_token)


def _windowed(question: Question, block: int) -> Layers:
    shape = question.geometry
    kept = WINDOWS_KEPT in question.kv_skip_layers
    per_token = window_cell(unquantized(question) if kept else question)
    page = block * per_token
    if kept and shape.full_layers:  # as many tokens as fit into a page of the others
        page = block * full_cell(question)
        block = max(GPU_BLOCK, page // (GPU_BLOCK * per_token) * GPU_BLOCK)
    return Layers(
        kind=Kind.CHUNKED if shape.window_kind is Window.CHUNKED else Kind.SLIDING,
        count=shape.sliding_layers,
        page=max(page, block * per_token),
        block=block,
        net=block * per_token,
        window=shape.window,
    )
