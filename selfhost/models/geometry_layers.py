"""Layers by the kind of cache they own: of every token, of a window, of a fixed size, or none."""

from collections import Counter
from dataclasses import dataclass

from selfhost.models.architectures import Architecture
from selfhost.models.fields import Fields
from selfhost.shapes.geometry import Window

_KIND = {
    "full": ("full_attention", "attention", "global_attention", "full", "global", "indexed_attention", "*"),
    "sliding": ("sliding_attention", "local_attention", "sliding", "local", "swa"),
    "chunked": ("chunked_attention",),
    "linear": (
        "linear",
        "linear_attention",
        "mamba",
        "mamba2",
        "conv",
        "short_conv",
        "kda",
        "gated_deltanet",
        "recurrent",
        "M",
    ),
    "none": ("none", "no_op", "moe", "mlp", "dense", "ffn", "-", "E", "O"),
    "hybrid": ("hybrid",),
}
_WORD = {word: kind for kind, words in _KIND.items() for word in words}
"""As layer_types, layers_block_type and hybrid_override_pattern spell them; `hybrid`: attention beside a state."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Layers:
    """`foreign` are words for layers that are in no table, counted as full."""

    full: int = 0
    sliding: int = 0
    linear: int = 0
    window: int = 0
    window_kind: Window = Window.SLIDING
    foreign: tuple[str, ...] = ()


def layers_of(text: Fields, row: Architecture, *, layers: int) -> Layers:
    """Count them as the engine does. Raises InputError for a list that is longer or shorter than the network."""
    kinds = _Kinds(text, row, layers).listed()
    if text.number("num_kv_shared_layers"):
        if text.number("num_kv_shared_layers") >= layers:
            raise text.nonsense(
                f"num_kv_shared_layers is {text.number('num_kv_shared_layers')} of {layers} layers",
                "A layer that shares a cache needs one before it that owns one.",
            )
        kinds = kinds[: layers - text.number("num_kv_shared_layers")]
    found = Counter(_WORD.get(kind, "full") for kind in kinds)
    windowed = found["sliding"] + found["chunked"]
    chunked = found["chunked"] > 0
    states = found["linear"] + found["hybrid"]
    window = text.number("attention_chunk_size") if chunked else _window(text)
    return Layers(
        full=layers if row.attention == "beside" else found["full"] + found["hybrid"],
        sliding=windowed,
        linear=layers if row.attention in ("beside", "hybrid") else states,
        window=window + row.window_plus if windowed and window else 0,
        window_kind=Window.CHUNKED if chunked else Window.SLIDING,
        foreign=tuple(sorted({kind for kind in kinds if kind not in _WORD})),
    )


def _window(text: Fields) -> int:
    """Tokens; 0 without one. Some configs write -1 for none."""
    for name in ("sliding_window", "sliding_window_size", "window_size"):
        if text.raw.get(name) not in (None, -1, False):
            return text.number(name, limit=10**9)
    return 0


class _Kinds:
    """A word for each layer, from the first of many spellings that a config uses."""

    def __init__(self, text: Fields, row: Architecture, layers: int) -> None:
        self.text, self.row, self.layers = text, row, layers

    def listed(self) -> list[str]:
        if self.row.attention == "none":
            return ["linear"] * self.layers
        found = (
            self._types()
            or self._pattern()
            or self._kimi()
            or self._minimax()
            or self._mimo()
            or self._places()
            or self._intervals()
            or self._noop()
        )
        return self._whole(found) if found else self._beside_windows()

    def _whole(self, kinds: list[str]) -> list[str]:
        if len(kinds) == self.layers * self.row.sublayers or len(kinds) == self.layers:
            return kinds
        raise self.text.nonsense(
            f"it lists {len(kinds)} layers, and num_hidden_layers is {self.layers}",
            "Each layer must be listed once.",
        )

    def _types(self) -> list[str]:
        return self.text.words("layer_types", "layers_block_type")

    def _pattern(self) -> list[str]:
        """NemotronH: M Mamba-2, * attention, E experts, - a plain MLP."""
        pattern = self.text.raw.get("hybrid_override_pattern")
        return list(pattern) if isinstance(pattern, str) else []

    def _kimi(self) -> list[str]:
        linear = self.text.inner("linear_attn_config")
        states, full = linear.numbers("kda_layers"), linear.numbers("full_attn_layers")
        return [] if states is None or full is None else ["linear_attention"] * len(states) + ["full"] * len(full)

    def _minimax(self) -> list[str]:
        kinds = self.text.numbers("attn_type_list")
        return ["full" if kind == 1 else "linear_attention" for kind in kinds or ()]

    def _mimo(self) -> list[str]:
        kinds = self.text.numbers("hybrid_layer_pattern")
        return ["sliding" if kind == 1 else "full" for kind in kinds or ()]

    def _places(self) -> list[str]:
        """Attention layers by their number; the others have a state (LFM2, Bamba)."""
        places = self.text.numbers("full_attn_idxs", "attn_layer_indices")
        return [] if places is None else ["full" if one in places else "linear_attention" for one in range(self.layers)]

    def _intervals(self) -> list[str]:
        """Every so many layers one is full, the others have a state (Qwen3-Next, Ring-linear, Jamba)."""
        every = self.text.number("full_attention_interval", "layer_group_size")
        if every or (self.row.state is not None and self.row.every):
            return [self._full_each(place, every or self.row.every, "linear_attention") for place in self._all]
        period, offset = self.text.number("attn_layer_period"), self.text.number("attn_layer_offset")
        return ["full" if place % period == offset else "mamba" for place in self._all] if period else []

    def _noop(self) -> list[str]:
        """Blocks found by search, some without attention (Nemotron-NAS)."""
        blocks = self.text.raw.get("block_configs")
        if not isinstance(blocks, list) or not all(isinstance(one, dict) for one in blocks):
            return []
        attention = [one.get("attention") for one in blocks]
        return ["none" if isinstance(one, dict) and one.get("no_op") else "full" for one in attention]

    @property
    def _all(self) -> range:
        return range(self.layers)

    @staticmethod
    def _full_each(place: int, every: int, other: str) -> str:
        return "full" if (place + 1) % every == 0 else other

    def _beyond(self, window: int) -> bool:
        """A window that no sequence fills is none (Phi-4-mini: 262,144 of 131,072 positions)."""
        longest = self.text.number("max_position_embeddings", limit=10**9)
        return 0 < longest <= window

    def _beside_windows(self) -> list[str]:
        """A config that names a window and no list: by pattern, by the family's rule, or all layers."""
        if self.row.chunked:
            chunked = self.text.number("attention_chunk_size") > 0
            every = self.text.number("no_rope_layer_interval") or self.row.every
            return [self._full_each(place, every, "chunked_attention" if chunked else "full") for place in self._all]
        window = _window(self.text)
        if not window or self._beyond(window) or self.text.raw.get("use_sliding_window") is False:
            return ["full"] * self.layers
        pattern = self.text.raw.get("sliding_window_pattern") or self.text.raw.get("_sliding_window_pattern")
        if isinstance(pattern, str):  # EXAONE 4: LLLG
            return ["full" if pattern[place % len(pattern)] == "G" else "sliding" for place in self._all]
        every = self.text.number("sliding_window_pattern", "_sliding_window_pattern") or self.row.every
        if every:
            return [self._full_each(place, every, "sliding") for place in self._all]
        if self.text.raw.get("max_window_layers") is not None:  # Qwen2, dots.llm1: the first ones stay full
            full = min(self.layers, self.text.number("max_window_layers"))
            return ["full"] * full + ["sliding"] * (self.layers - full)
        return ["sliding"] * self.layers
