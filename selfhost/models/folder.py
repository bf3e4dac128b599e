"""What kind of directory this is: a model, or one of the things that look like one."""

from collections.abc import Iterable
from pathlib import Path

from selfhost.core.errors import InputError
from selfhost.shapes.finding import Place

PICKLES = (".bin", ".pt")
"""What vLLM 0.32 and 0.33 load when there is no *.safetensors (model_loader/default_loader.py, _prepare_weights)."""


def names(folder: Path) -> tuple[str, ...]:
    """Names of the files in `folder`, in order; hidden ones left out."""
    return tuple(sorted(entry.name for entry in folder.iterdir() if not entry.name.startswith(".")))


def is_pickle(name: str) -> bool:
    """Whether a file holds a model's weights as a Python pickle; adapters and what training leaves do not count."""
    return name.endswith(PICKLES) and name.startswith(("pytorch_model", "model"))


def check_is_model(folder: Path) -> None:
    """Raise InputError when `folder` is no Hugging Face model directory; say what it is instead."""
    place = Place(path=str(folder))
    if folder.is_file() and folder.suffix == ".gguf":
        raise InputError(f"{folder} is a GGUF file", why=_GGUF_WHY, fix=_GGUF_FIX, id="MD005", place=place)
    if not folder.is_dir():
        what = "is a file, expected a directory" if folder.exists() else "does not exist"
        raise InputError(f"{folder} {what}", why=_FILE_WHY, fix=_fix_path(folder), id="MD002", place=place)
    seen = names(folder)
    if "config.json" in seen:
        return
    shown = _some(seen)
    if not seen:
        raise InputError(f"{folder} is empty", why=_NEEDS, fix=_FETCH, id="MD003", place=place)
    if "adapter_config.json" in seen:
        raise adapter(folder)
    if is_mistral_format(seen):
        raise InputError(
            f"{folder} holds a model in Mistral's own format only", why=MISTRAL_WHY, fix=MISTRAL_FIX, evidence=shown,
            id="MD032", place=place,
        )  # fmt: skip
    if any(name.endswith(".gguf") for name in seen):
        raise gguf(folder)
    inside = [child.name for child in sorted(folder.iterdir()) if (child / "config.json").is_file()]
    fix = tuple(f"perhaps {folder / name}" for name in inside[:3]) or _FETCH
    raise InputError(f"{folder} has no config.json", why=_NEEDS, fix=fix, evidence=shown, id="MD003", place=place)


def adapter(folder: Path) -> InputError:
    """The error for what only changes another model."""
    return InputError(
        f"{folder} holds an adapter, not a whole model",
        why="An adapter (LoRA) only changes a base model, which its adapter_config.json names.",
        fix=("merge the adapter into its base model and serve the merged directory",),
        evidence=_some(names(folder)),
        id="MD006",
        place=Place(path=str(folder)),
    )


def gguf(folder: Path) -> InputError:
    """The error for weights in llama.cpp's format; some of their repositories keep the base model's config.json."""
    return InputError(
        f"{folder} holds GGUF files and no *.safetensors",
        why=_GGUF_WHY,
        fix=_GGUF_FIX,
        evidence=_some(names(folder)),
        id="MD005",
        place=Place(path=str(folder)),
    )


def _some(seen: tuple[str, ...]) -> str:
    return ", ".join(seen[:6]) + (f" and {len(seen) - 6} more" if len(seen) > 6 else "")


def is_mistral_format(seen: Iterable[str]) -> bool:
    """Whether these files are params.json and consolidated weights, as Mistral and Meta hand them out."""
    found = set(seen)
    return "params.json" in found and any(name.startswith("consolidated") for name in found)


MISTRAL_WHY = "params.json and consolidated weights stand for config.json and *.safetensors, which are not there."
_MISTRAL_FLAGS = "--config-format mistral --load-format mistral --tokenizer-mode mistral"
MISTRAL_FIX = (
    "name the repository of the same model in the transformers format, mostly under the same or a close name",
    f"or serve it with the engine itself, which reads this format:\nvllm serve MODEL {_MISTRAL_FLAGS}",
)
_GGUF_WHY = "GGUF is the format of llama.cpp; the engines here load safetensors with a config.json."
_GGUF_FIX = ("name the repository that the GGUF was made from (its card says so), for instance Qwen/Qwen3-4B",)
_NEEDS = "A model directory holds config.json, the tokenizer's files and *.safetensors."
_FILE_WHY = "A model is a directory with config.json, the tokenizer's files and *.safetensors."
_FETCH = ("download it again, whole:\nhf download ORG/NAME --local-dir DIR",)


def _fix_path(folder: Path) -> tuple[str, ...]:
    if folder.is_file():
        return (f"name its directory: {folder.parent}",)
    siblings = (
        [entry.name for entry in sorted(folder.parent.iterdir()) if entry.is_dir()] if folder.parent.is_dir() else []
    )
    near = [name for name in siblings if name.lower().startswith(folder.name.lower()[:4])]
    return tuple(f"perhaps {folder.parent / name}" for name in near[:3]) or (
        "check the path; a name without a slash is looked up in the catalog, org/name on the hub",
    )
