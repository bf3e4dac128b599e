"""Which files of a repository an engine needs: not every format of the same weights."""

from collections.abc import Mapping
from pathlib import PurePosixPath

from selfhost.core.errors import InputError
from selfhost.models.folder import MISTRAL_FIX, MISTRAL_WHY, is_mistral_format, is_pickle

_OTHER_FORMATS = (
    ".bin", ".pt", ".pth", ".ckpt", ".gguf", ".ggml", ".onnx", ".onnx_data", ".h5", ".msgpack", ".ot", ".tflite",
    ".mlmodel", ".mlpackage", ".npz", ".npy", ".zip", ".tar", ".gz", ".nemo", ".engine", ".plan", ".pte",
)  # fmt: skip
_NOT_SERVED = (
    ".md", ".png", ".jpg", ".jpeg", ".gif", ".webp", ".svg", ".mp4", ".mp3", ".wav", ".pdf", ".gitattributes",
    ".gitignore", ".ipynb", ".csv", ".parquet", ".pkl", ".pickle",
)  # fmt: skip
_OTHER_FOLDERS = {
    "original",
    "onnx",
    "openvino",
    "coreml",
    "metal",
    "gguf",
    "flax",
    "tf",
    "figures",
    "assets",
    "images",
}
_TEXTS = (".json", ".jinja", ".py", ".txt", ".model")
_CARD = (".json", ".jinja")
_CARD_LIMIT = 1_000_000
"""config and chat templates are small; tokenizer.json and shard indexes wait for the download."""
_ANY_SIZE = "tokenizer_config.json"
"""May hold the chat template, and lists thousands of added tokens in some families."""


def wanted(listing: Mapping[str, int]) -> dict[str, int]:
    """The files to download, small ones first: safetensors, or pickles when there is nothing else."""
    tensors = weight_files(listing)
    chosen = {name: size for name, size in listing.items() if name in tensors or _is_companion(name)}
    return dict(sorted(chosen.items(), key=lambda item: (item[0] in tensors, item[1], item[0])))


def weight_files(listing: Mapping[str, int]) -> frozenset[str]:
    """Names of the files that hold the weights to be served."""
    root = [name for name in listing if "/" not in name]
    tensors = [name for name in root if name.endswith(".safetensors") and not name.startswith("adapter_")]
    own = [name for name in tensors if not name.startswith("consolidated")]
    plain = [name for name in own if not _is_variant(name)]
    for choice in (plain, own, tensors):
        if choice:
            return frozenset(choice)
    return frozenset(name for name in root if is_pickle(name))


def card_files(listing: Mapping[str, int]) -> tuple[str, ...]:
    """The few small files that say what a model is."""
    return tuple(
        name for name in wanted(listing) if name.endswith(_CARD) and (listing[name] <= _CARD_LIMIT or name == _ANY_SIZE)
    )


def check_is_model(repo_id: str, listing: Mapping[str, int]) -> None:
    """Raise InputError when a repository holds no model that an engine here can load."""
    root = sorted(name for name in listing if "/" not in name)
    if "config.json" in root and weight_files(listing):
        return
    shown = ", ".join(root[:8])
    if "adapter_config.json" in root:
        raise InputError(
            f"{repo_id} holds an adapter, not a whole model",
            why="An adapter (LoRA) only changes a base model, which its adapter_config.json names.",
            fix=("name the base model, or a repository with the merged weights",),
            evidence=shown,
            id="MD006",
        )
    if is_mistral_format(root) and "config.json" not in root:
        raise InputError(
            f"{repo_id} holds a model in Mistral's own format only",
            why=MISTRAL_WHY,
            fix=MISTRAL_FIX,
            evidence=shown,
            id="MD032",
        )
    if any(name.endswith(".gguf") for name in root):
        raise InputError(
            f"{repo_id} holds GGUF files, which the engines here do not load",
            why="GGUF is the format of llama.cpp; here it takes safetensors with a config.json.",
            fix=("name the repository that the GGUF was made from; the model's page links to it as base model",),
            evidence=shown,
            id="MD005",
        )
    lacking = "config.json" if "config.json" not in root else "weights (no *.safetensors)"
    raise InputError(
        f"{repo_id} has no {lacking}",
        why="It may be a data set, a tokenizer, or a model for another kind of program.",
        fix=("see the files on the model's page, then name another repository",),
        evidence=shown,
        id="MD018" if "config.json" in root else "MD003",
    )


def _is_variant(name: str) -> bool:
    """`model.fp16.safetensors` beside `model.safetensors`: the same weights once more."""
    stem = name.removesuffix(".safetensors")
    return stem.rpartition(".")[2] in ("fp16", "fp32", "bf16", "non_ema")


def _is_companion(name: str) -> bool:
    path = PurePosixPath(name)
    if name.endswith((".safetensors", *_OTHER_FORMATS, *_NOT_SERVED)) or path.name.startswith("."):
        return False
    if len(path.parts) == 1:
        return not (name.endswith(".index.json") and name.startswith(("pytorch_model", "tf_model", "flax_model")))
    return not _OTHER_FOLDERS & set(path.parts[:-1]) and name.endswith(_TEXTS)
