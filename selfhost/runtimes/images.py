"""Images: as they lie here, and bringing one here with its progress."""

import re
import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from selfhost.runtimes.base import LocalImage
from selfhost.runtimes.container_client import CallFailed, Client, Layer, Object
from selfhost.runtimes.container_errors import worded
from selfhost.runtimes.pull_errors import PULL_ROWS, other_content
from selfhost.shapes.event import Event, Sink

_DONE = re.compile(r"download complete|pull complete|already exists|^done$|skipped: already exists", re.IGNORECASE)
TELL_S = 0.2


def local_image(found: Object, reference: str) -> LocalImage:
    config = found.get("Config") or {}
    entrypoint = config.get("Entrypoint") or ()
    platform = "/".join(str(found.get(key)) for key in ("Os", "Architecture", "Variant") if found.get(key))
    size = found.get("Size")
    identity = str(found.get("Id") or "")
    return LocalImage(
        id=identity if identity.startswith("sha256:") or not identity else f"sha256:{identity}",
        digest=_digest(found, reference),
        reference=reference,
        platform=platform,
        size_bytes=size if isinstance(size, int) else None,
        entrypoint=(entrypoint,) if isinstance(entrypoint, str) else tuple(str(word) for word in entrypoint),
        labels=_labels(config.get("Labels")),
    )


def pull(client: Client, reference: str, *, sink: Sink, step: str) -> LocalImage:
    """Bring it here, and look at what came. Raises EnvironmentMissing."""
    progress = Progress(sink, step, reference)
    try:
        client.pull(reference, on_layer=progress.take)
        progress.tell()
        found = client.image(reference)
    except CallFailed as failed:
        raise worded(client, failed, subject=reference, rows=PULL_ROWS) from None
    if found is None:
        cut = CallFailed("Connection broken: the answer ended before the image was whole")
        raise worded(client, cut, subject=reference, rows=PULL_ROWS)
    image = local_image(found, reference)
    wanted = reference.partition("@")[2]
    if wanted and image.digest and image.digest != wanted:
        raise other_content(client, reference, got=image.digest)
    return image


@dataclass(slots=True)
class Progress:
    """Sums up layers. The total grows while layers are announced; what is done never goes back.

    podman without a terminal only names a layer when it begins: then there are no bytes and no `1 of 3`.
    """

    sink: Sink
    step: str
    reference: str
    _totals: dict[str, int] = field(default_factory=dict)
    _done: dict[str, int] = field(default_factory=dict)
    _layers: dict[str, bool] = field(default_factory=dict)
    _shown: int = 0
    _last: float = 0.0
    _began: float = field(default_factory=time.monotonic)

    def take(self, layer: Layer) -> None:
        if layer.id and not layer.status.startswith(("Pulling from", "Digest", "Status")):
            self._layers.setdefault(layer.id, False)
            if layer.total and layer.status == "Downloading":
                self._totals[layer.id] = layer.total
                self._done[layer.id] = max(self._done.get(layer.id, 0), layer.done or 0)
            if _DONE.search(layer.status):
                self._layers[layer.id] = True
                self._done[layer.id] = self._totals.get(layer.id, 0)
        now = time.monotonic()
        if now - self._last >= TELL_S:
            self._last = now
            self.tell()

    def tell(self) -> None:
        finished = sum(self._layers.values())
        layers = f"{finished} of {len(self._layers)} layers" if finished else f"{len(self._layers)} layers"
        text = f"{self.reference}: {layers}" if self._layers else self.reference
        self._shown = max(self._shown, sum(self._done.values()))
        total = sum(self._totals.values())
        self.sink.on(
            Event(
                step=self.step,
                state="working",
                text=text,
                done=self._shown if total else None,
                total=max(total, self._shown) if total else None,
                elapsed_s=time.monotonic() - self._began,
            )
        )


def _digest(found: Object, reference: str) -> str:
    """Of the manifest, as the registry knows it; the one under this very name where there are several."""
    listed = [str(one) for one in found.get("RepoDigests") or ()]
    wanted = reference.partition("@")[2]
    if wanted and any(one.endswith(wanted) for one in listed):
        return wanted
    name = _name(reference)
    own = [one for one in listed if _name(one).endswith(name)] or listed
    return own[0].partition("@")[2] if own else ""


def _name(reference: str) -> str:
    plain = reference.partition("@")[0]
    head, slash, last = plain.rpartition("/")
    return f"{head}{slash}{last.partition(':')[0]}"


def _labels(value: object) -> Mapping[str, str]:
    labels: Mapping[str, Any] = value if isinstance(value, Mapping) else {}
    return {str(name): str(said) for name, said in labels.items()}
