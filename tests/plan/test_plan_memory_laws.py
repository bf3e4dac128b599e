"""What must hold for every question about memory."""

from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from selfhost.models.catalog import rows
from selfhost.plan.memory.kv_vllm import vllm_cache
from selfhost.plan.memory.predict import predict
from selfhost.plan.memory.question import Question, Room, Spread, Weights
from selfhost.plan.memory.releases import is_said, release
from selfhost.shapes.units import GIB

VERSIONS = ("0.11.0", "0.19.0", "0.21.0", "0.28.0", "0.33.0")


@st.composite
def questions(draw: st.DrawFn, engine: str = "vllm") -> Question:
    row = draw(st.sampled_from(rows()))
    return Question(
        engine=engine,
        version=draw(st.sampled_from(VERSIONS)) if engine == "vllm" else "0.5.23",
        backend=draw(st.sampled_from(("cuda", "rocm", "xpu", "cpu"))),
        geometry=row.geometry,
        weights=Weights(parameters=row.params_b * 1e9),
        room=Room(name="a card", total=draw(st.integers(4, 300)) * GIB, unified=draw(st.booleans())),
        spread=Spread(tensor=draw(st.sampled_from((1, 2, 4, 8))), pipeline=draw(st.sampled_from((1, 2)))),
        kv=draw(st.sampled_from(("auto", "fp8", "nvfp4", "fp8_per_token_head"))),
        context=draw(st.one_of(st.none(), st.integers(1, 300_000))),
        native=row.context,
        max_seqs=draw(st.one_of(st.none(), st.integers(1, 1024))),
        batch_tokens=draw(st.one_of(st.none(), st.integers(256, 32_768))),
        prefix_caching=draw(st.sampled_from((None, True, False))),
    )


@settings(max_examples=60, deadline=None)
@given(asked=questions(), length=st.integers(1, 200_000), more=st.integers(0, 100_000))
def test_need_grows_with_length_and_the_longest_is_the_last_that_fits(asked: Question, length: int, more: int) -> None:
    cache = vllm_cache(asked, release("vllm", asked.version))
    assert cache.need(length) <= cache.need(length + more)
    longest = cache.longest(cache.need(length), 10**7)
    assert longest >= length
    assert cache.need(longest) <= cache.need(length)
    if longest < 10**7:
        assert cache.need(longest + 1) > cache.need(length)


@settings(max_examples=60, deadline=None)
@given(asked=st.one_of(questions(), questions(engine="sglang")), more=st.integers(1, 64))
def test_more_memory_never_leaves_fewer_tokens(asked: Question, more: int) -> None:
    if asked.engine == "vllm" and asked.context is None:
        asked = replace(asked, context=4096)  # the printed tokens hang on it
    utilization, tokens, seqs = 0.9, asked.batch_tokens or 2048, asked.max_seqs or 64  # defaults go by the card's size
    asked = replace(asked, utilization=utilization, batch_tokens=tokens, max_seqs=seqs)
    larger = replace(asked, room=replace(asked.room, total=asked.room.total + more * GIB))
    assert predict(larger).kv_tokens >= predict(asked).kv_tokens
    assert predict(larger).longest >= predict(asked).longest


@settings(max_examples=60, deadline=None)
@given(asked=st.one_of(questions(), questions(engine="sglang")))
def test_the_parts_of_a_token_add_up(asked: Question) -> None:
    answer = predict(asked)
    if not answer.kv_tokens:
        assert answer.effective_bytes_per_token == 0
        return
    whole = answer.effective_bytes_per_token / answer.raw_bytes_per_token - 1
    assert sum(gap.share for gap in answer.gaps) == pytest.approx(whole, abs=1e-9)
    assert answer.longest >= 0
    assert answer.why


@given(text=st.text(max_size=30))
def test_any_version_is_read_as_far_as_it_goes(text: str) -> None:
    assert release("vllm", text) >= (0,)
    assert is_said(text) in (True, False)


@pytest.mark.parametrize(
    ("engine", "written", "read"),
    [
        ("vllm", "0.27 (2026-08)", (0, 27)),
        ("vllm", "0.15.2rc1.dev93+g11a4c9d30", (0, 15, 2)),
        ("vllm", "v0.33.0", (0, 33, 0)),
        ("vllm", "0.2x-0.30 (combined KV log line)", (0, 33)),
        ("vllm", "2026-04/05 nightly", (0, 21)),
        ("vllm", "0.1.dev20073+g8e685d198", (0, 33)),
        ("vllm", "", (0, 33)),
        ("sglang", "0.4.8.post1 (rocm630)", (0, 4, 8)),
        ("sglang", "0.0.0.dev1+g5f55db35e (2026-09-20)", (0, 5, 15)),
        ("sglang", "0.5.x (2026-07)", (0, 5, 15)),
    ],
)
def test_written_versions(engine: str, written: str, read: tuple[int, ...]) -> None:
    assert release(engine, written) == read


def test_what_a_window_spares_is_not_called_rounding() -> None:
    row = next(row for row in rows() if row.id == "google/gemma-2-2b-it")
    shape = replace(row.geometry, full_layers=0, sliding_layers=row.geometry.layers)
    asked = Question(
        engine="vllm", version="0.33.0", backend="cuda", geometry=shape, weights=Weights(parameters=2.6e9),
        room=Room(name="a card", total=48 * GIB), spread=Spread(), kv="auto", context=32_768, native=32_768,
    )  # fmt: skip
    answer = predict(asked)
    assert answer.effective_bytes_per_token < answer.raw_bytes_per_token
    assert min(answer.gaps, key=lambda gap: gap.share).name == "windowed layers"
