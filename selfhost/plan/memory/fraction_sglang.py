"""SGLang's default share of static memory, and what is free before the weights load."""

from selfhost.plan.memory.figures import figure, table
from selfhost.plan.memory.question import Question
from selfhost.plan.memory.releases import Release
from selfhost.shapes.units import GIB, MIB

BY_RESERVE_SINCE: Release = (0, 4, 9)
"""Before, the share went by the number of ranks alone."""
BY_RANKS = {1: 0.88, 2: 0.87, 4: 0.85, 8: 0.81, 16: 0.79}
RESERVE, LARGE_RESERVE, LARGE = 512, 10 * 1024, 60 * 1024
"""MiB: at least, and on cards of more than 60 GiB (arg_groups/memory_hook.py of 0.5.23)."""
LATENT_GRAPHS = 1536
PREFILL_GRAPHS_SINCE: Release = (0, 5, 10)
IMAGES_KEPT_SINCE: Release = (0, 5, 20)
IMAGES = 0.95
TOWER = 302e6
"""Parameters of the image tower that the rule takes as usual: 24 layers of 1,024."""


def free_before(question: Question) -> int:
    """After the context and communication buffers are there, before the weights are."""
    room = question.room
    linked = room.linked and question.spread.ranks > 1
    where = "unified" if room.unified else "linked" if linked else "apart"
    taken = int(figure("sglang_taken", where) * GIB)
    left = room.total - taken
    if room.free is None:
        return left
    return room.free if room.unified else min(left, room.free - taken)


def static_fraction(question: Question, version: Release) -> float:
    """mem_fraction_static where nobody says it."""
    ranks = question.spread.tensor * question.spread.pipeline
    if version < BY_RESERVE_SINCE:
        return next((share for count, share in sorted(BY_RANKS.items()) if ranks <= count), min(BY_RANKS.values()))
    total = question.room.total // MIB
    if not total:
        return 0.95
    return round((total - reserve_mib(question, version)) / total, 3) * _images(question)


def reserve_mib(question: Question, version: Release) -> float:
    """For activations and graphs, as the rule has it."""
    spread = question.spread
    total = question.room.total // MIB
    chunk, captured = _card(question)
    chunk = question.batch_tokens or chunk
    captured = min(captured, question.max_seqs) if question.max_seqs else captured
    reserve = RESERVE + 1.5 * max(chunk, 2048) + 1024 * spread.tensor * spread.pipeline / 8
    if not question.eager:
        reserve += 2 * captured
        if spread.attention_data > 1:
            reserve += captured * spread.attention_data * (3 if captured <= 300 else 4.5)
        if version >= PREFILL_GRAPHS_SINCE and question.backend == "cuda":
            reserve += LATENT_GRAPHS if question.geometry.latent else 8 * len(_prefill_sizes(chunk))
    return max(reserve, LARGE_RESERVE) if total > LARGE else reserve


def _card(question: Question) -> tuple[int, int]:
    """Prefill tokens of a batch, and the largest batch of a decode graph, by the card's size."""
    total = question.room.total // MIB
    row = next(row for row in table()["sglang_card"] if total < row.get("below_gib", 10**6) * 1024)
    return row["chunk"], row["graph"] if question.spread.tensor < 4 else row["graph_of_four"]


def _prefill_sizes(most: int) -> list[int]:
    spans = ((4, 33, 4), (48, 257, 16), (288, 513, 32), (576, 1025, 64), (1280, 4097, 256), (4608, most + 1, 512))
    return [size for span in spans for size in range(*span) if size <= most]


def _images(question: Question) -> float:
    """Models that see keep room for their tower: less the larger it is."""
    shape = question.geometry
    if not shape.vision or not question.multimodal:
        return 1.0
    tower = shape.vision if shape.vision > 1 else TOWER
    return IMAGES * max(0.8, min(1.05, 1.0 - 0.1 * (tower / TOWER - 1.0)))


def image_cache(question: Question, version: Release) -> int:
    """Embeddings of images, which 0.5.23 takes out of the pools' budget (SGLANG_VLM_CACHE_SIZE_MB)."""
    sees = question.geometry.vision and question.multimodal
    return 100 * MIB if sees and version >= IMAGES_KEPT_SINCE else 0
