"""A model's own description: config.json and its neighbours → geometry, precision, context, template, sampling."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from selfhost.core.errors import InputError
from selfhost.models import folder as folders
from selfhost.models.context import native_context
from selfhost.models.fields import Fields
from selfhost.models.geometry import completed, geometry_of
from selfhost.models.quantization import Stored, stored_in
from selfhost.shapes.finding import Place
from selfhost.shapes.geometry import Geometry
from selfhost.shapes.host import Fact

_NESTED = ("text_config", "llm_config", "language_config", "thinker_config", "llm", "language_model")
_SAMPLING = (
    "temperature", "top_p", "top_k", "min_p", "repetition_penalty", "presence_penalty", "frequency_penalty",
    "max_new_tokens",
)  # fmt: skip
"""Of generation_config.json, what both engines take as the server's default (vLLM 0.33.0: vllm/config/model.py)."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Config:
    """What the files of one model say. `template` is empty when there is none."""

    model_type: str
    architectures: tuple[str, ...]
    geometry: Fact[Geometry]
    stored: Stored
    context_native: Fact[int]
    remote_code: bool
    template: str
    generation: dict[str, float] = field(default_factory=dict)

    @property
    def dtype(self) -> Fact[str]:
        return self.stored.dtype


def read(folder: str | Path) -> Config:
    """Read a model's directory. Raises InputError (MD003 to MD006, MD031, MD032) when it is not one."""
    root = Path(folder)
    folders.check_is_model(root)
    path = root / "config.json"
    raw = read_object(path)
    inner = _text_part(raw)
    text, how = (Fields(raw, path), "config.json") if inner is raw else completed(Fields(inner, path))
    return Config(
        model_type=text.model_type or Fields(raw, path).model_type,
        architectures=_architectures(raw, inner),
        geometry=geometry_of(text, raw, how=how),
        stored=stored_in(raw, inner, _beside(root / "hf_quant_config.json")),
        context_native=native_context(text),
        remote_code=bool(raw.get("auto_map")),
        template=_template(root),
        generation=_generation(root / "generation_config.json"),
    )


def read_object(path: Path) -> dict[str, Any]:
    """A JSON object from a file that must be one."""
    data = path.read_bytes()
    try:
        raw = json.loads(data.decode("utf-8-sig"))
    except (ValueError, RecursionError) as error:
        pointer = data.startswith(b"version https://git-lfs")
        raise InputError(
            f"{path} is a Git LFS pointer, not the file" if pointer else f"{path} is not JSON",
            why="The repository was cloned without git-lfs, so only placeholders came."
            if pointer
            else f"The parser stopped: {error}. The download may have been cut, or a web page was saved instead.",
            fix=(f"in the clone:\ngit -C {path.parent} lfs pull",)
            if pointer
            else ("fetch the file again from where the model came from",),
            evidence=data[:200].decode("utf-8", "replace"),
            id="MD004",
            place=Place(path=str(path), line=getattr(error, "lineno", None)),
        ) from None
    if not isinstance(raw, dict):
        raise InputError(
            f"{path} holds a JSON {_word(raw)}, expected an object",
            why=f"{path.name} describes the model as named values.",
            fix=("fetch the file again from where the model came from",),
            id="MD004",
            place=Place(path=str(path)),
        )
    return raw


def _word(value: object) -> str:
    if value is None:
        return "null"
    return {list: "array", str: "string", bool: "boolean"}.get(type(value), "number")


def _beside(path: Path) -> dict[str, Any]:
    return read_object(path) if path.is_file() else {}


def _text_part(raw: Mapping[str, Any]) -> Mapping[str, Any]:
    """The language model inside a multimodal config, with what the outer level alone says behind it."""
    for name in _NESTED:
        inner = raw.get(name)
        if isinstance(inner, dict) and inner:
            return {**_scalars(raw), **{key: value for key, value in _text_part(inner).items() if value is not None}}
    return raw


def _scalars(raw: Mapping[str, Any]) -> dict[str, Any]:
    kept = (
        "torch_dtype", "dtype", "quantization_config", "vocab_size", "max_position_embeddings", "tie_word_embeddings",
    )  # fmt: skip
    return {name: raw[name] for name in kept if raw.get(name) is not None}


def _architectures(raw: Mapping[str, Any], text: Mapping[str, Any]) -> tuple[str, ...]:
    named = raw.get("architectures") or text.get("architectures") or ()
    return tuple(str(name) for name in named) if isinstance(named, list) else ()


def _generation(path: Path) -> dict[str, float]:
    """Sampling as the model's authors recommend it."""
    if not path.is_file():
        return {}
    raw = read_object(path)
    return {
        name: raw[name]
        for name in _SAMPLING
        if isinstance(raw.get(name), int | float) and not isinstance(raw[name], bool)
    }


def _template(root: Path) -> str:
    """The chat template; several named ones are read as their default."""
    own = root / "chat_template.jinja"
    if own.is_file():
        return own.read_text(encoding="utf-8", errors="replace")
    for name in ("chat_template.json", "tokenizer_config.json"):
        path = root / name
        if not path.is_file():
            continue
        template = read_object(path).get("chat_template")
        if isinstance(template, str) and template:
            return template
        if isinstance(template, list):
            return _default_of(template)
    return ""


def _default_of(templates: Sequence[object]) -> str:
    named = {str(one.get("name")): str(one.get("template") or "") for one in templates if isinstance(one, dict)}
    return named.get("default") or next(iter(named.values()), "")
