"""config.json → Geometry: what of a network decides its memory and its speed."""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from selfhost.models.architectures import Architecture, architecture_of
from selfhost.models.fields import Fields
from selfhost.models.geometry_attention import Heads, heads_of
from selfhost.models.geometry_experts import experts_of
from selfhost.models.geometry_layers import Layers, layers_of
from selfhost.models.geometry_state import state_of
from selfhost.shapes.geometry import Experts, Geometry, State
from selfhost.shapes.host import Fact, Known, Unknown

_LAYERS = ("num_hidden_layers", "n_layer", "n_layers", "num_layers")
_HIDDEN = ("hidden_size", "n_embd", "d_model", "dim")
_HEADS = ("num_attention_heads", "n_head", "n_heads", "num_heads")
_VOCAB = ("vocab_size", "padded_vocab_size")
_INTER = ("intermediate_size_mlp", "intermediate_size", "n_inner", "ffn_hidden_size", "ffn_dim")
_MTP = ("num_nextn_predict_layers", "mtp_num_hidden_layers", "num_mtp_modules", "mtp_num_layers", "num_mtp_layers")
_TOWERS = (
    "vision_config", "audio_config", "speech_config", "visual", "vision_tower", "mm_vision_tower", "img_processor",
    "vision_n_layers", "vit_config", "audio_tower", "audio_encoder",
)  # fmt: skip
_MOST_LAYERS = 2000


def completed(text: Fields) -> tuple[Fields, str]:
    """A text config inside a multimodal one, with what transformers fills in; and how it is known then."""
    defaults = architecture_of(text.model_type).defaults
    taken = {name: value for name, value in defaults.items() if text.raw.get(name) is None}
    words = f", and transformers' own {', '.join(sorted(taken))}" if taken else ""
    return Fields({**text.raw, **taken}, text.path), f"config.json{words}"


def geometry_of(text: Fields, outer: Mapping[str, Any], *, how: str = "config.json") -> Fact[Geometry]:
    """The geometry of the language model `text` inside `outer` (the same when nothing is nested).

    Unknown when a size is not there. Raises InputError (MD031) for sizes that no network has.
    """
    row = architecture_of(text.model_type)
    layers = text.number(*_LAYERS, limit=_MOST_LAYERS) * row.sublayers or len(_listed(text))
    hidden, heads, vocab = text.number(*_HIDDEN), text.number(*_HEADS), text.number(*_VOCAB)
    sizes = {"num_hidden_layers": layers, "hidden_size": hidden, "num_attention_heads": heads, "vocab_size": vocab}
    if row.attention == "none":
        sizes.pop("num_attention_heads")
        heads = 0
    missing = [name for name, value in sizes.items() if not value]
    if missing:
        zero = [name for name in missing if text.raw.get(name) == 0]
        if zero:
            raise text.nonsense(f"{zero[0]} is 0", "Every network has at least one.")
        return Unknown(f"config.json gives no {', '.join(missing)}")
    found = layers_of(text, row, layers=layers)
    attention = heads_of(text, row, heads=heads, hidden=hidden)
    state = state_of(text, row, hidden=hidden, heads=heads) if found.linear else None
    if found.linear == layers and state is None:
        return Unknown("config.json does not give the sizes of its recurrent state, and every layer has one")
    made = Geometry(
        layers=layers,
        full_layers=found.full,
        sliding_layers=found.sliding,
        linear_layers=found.linear,
        hidden=hidden,
        heads=heads,
        kv_heads=attention.kv,
        head_dim=attention.dim,
        vocab=vocab,
        v_head_dim=attention.value_dim,
        window=found.window,
        window_kind=found.window_kind,
        full_kv_heads=attention.full_kv,
        full_head_dim=attention.full_dim,
        latent=attention.latent,
        state=state,
    )
    rest = _rest(made, text, row, experts_of(text, layers=layers), outer=outer)
    note = "; ".join(_notes(text, row, found, attention, state))
    return Known(replace(rest, exact=not note, note=note), how)


def _listed(text: Fields) -> list[str]:
    """Layers of a config that only lists them."""
    pattern = text.raw.get("hybrid_override_pattern")
    return text.words("layers_block_type", "layer_types") or (list(pattern) if isinstance(pattern, str) else [])


def _rest(
    made: Geometry, text: Fields, row: Architecture, experts: Experts | None, *, outer: Mapping[str, Any]
) -> Geometry:
    """What decides the weights."""
    tie = text.raw.get("tie_word_embeddings")
    per_layer = text.number("hidden_size_per_layer_input")
    return replace(
        made,
        experts=experts,
        intermediate=text.number(*_INTER)
        or text.inner("ffn_config").number(*_INTER)
        or (experts.inter if experts else 0),
        tie=tie if isinstance(tie, bool) else row.tie,
        layer_embeddings=text.number("vocab_size_per_layer_input") * made.layers * per_layer,
        vision=int(any(outer.get(name) for name in _TOWERS)),
        mtp_layers=text.number(*_MTP),
    )


def _notes(text: Fields, row: Architecture, found: Layers, attention: Heads, state: State | None) -> list[str]:
    """Why the geometry is only near; empty when it is the engine's own."""
    kind = text.model_type or "a model without model_type"
    notes = [] if row.known else [f"{kind} is in no table: computed as a plain transformer"]
    if row.inexact:
        notes.append(f"{kind}: {row.inexact}")
    if found.foreign:
        notes.append(f"layers called {', '.join(found.foreign)} are in no table: counted as full attention")
    if found.linear and state is None:
        notes.append("config.json does not give the sizes of its recurrent state")
    if found.sliding and not found.window:
        notes.append("config.json does not give the window of its windowed layers")
    if text.number("num_kv_shared_layers") and not row.shares:
        notes.append(f"{kind} is not known to share caches between layers")
    if text.raw.get("is_encoder_decoder") is True and not row.inexact:
        notes.append("it has an encoder beside its decoder")
    if attention.note:
        notes.append(attention.note)
    return notes
