"""Which folder of the host holds the model, and where it is found inside the container."""

import re
from dataclasses import dataclass
from pathlib import PurePosixPath

from selfhost.shapes.host import Known
from selfhost.shapes.model import Model

TARGET = "/model"
ELSEWHERE = "/srv/models"
"""Where a model is expected that is not on this machine yet."""
_STORAGE = re.compile(r"models--.+--.+")


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelMount:
    """`source` on the host is mounted read-only at `target`; the weights are found at `path`."""

    source: str
    target: str
    path: str
    reason: str


def model_mount(model: Model) -> ModelMount:
    """The model's folder alone. A snapshot of the hub's cache is links into its repository, which is mounted then."""
    if not model.path:
        source = f"{ELSEWHERE}/{model.id.strip('/').replace('/', '--')}"
        fill = f"hf download {model.id}{_revision(model)} --local-dir {source}"
        return ModelMount(
            source=source, target=TARGET, path=TARGET, reason=f"not on this machine yet; `{fill}` puts it there"
        )
    folder = PurePosixPath(model.path)
    storage = folder.parent.parent
    if folder.parent.name == "snapshots" and _STORAGE.fullmatch(storage.name):
        return ModelMount(
            source=str(storage),
            target=TARGET,
            path=f"{TARGET}/snapshots/{folder.name}",
            reason="this model's repository alone: its snapshot is links into the blobs beside it; the token of the "
            "hub and other models stay outside",
        )
    return ModelMount(source=str(folder), target=TARGET, path=TARGET, reason="this model's folder alone, read-only")


def _revision(model: Model) -> str:
    return f" --revision {model.revision.value}" if isinstance(model.revision, Known) and model.revision.value else ""
