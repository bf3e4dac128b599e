"""As whom the server runs inside its container."""

from dataclasses import dataclass

from selfhost.plan.container.surrounding import is_rootless
from selfhost.shapes.host import Host, Known
from selfhost.shapes.plan import Image

ROOTLESS = "0:0"
"""Written only for an engine that runs without root."""


@dataclass(frozen=True, slots=True, kw_only=True)
class User:
    """`text` as `--user` takes it; empty is the image's own."""

    text: str
    reason: str


def user_of(host: Host, image: Image | None, *, kind: str) -> User:
    """Without a capability in any case, and nobody becomes more on the way (no-new-privileges)."""
    around = host.surroundings
    uid = around.uid if around is not None else None
    if is_rootless(host, kind):
        return User(text=ROOTLESS, reason="root in there is you out here: this engine runs without root")
    if isinstance(uid, Known) and uid.value and around is not None:
        group = around.groups[0] if around.groups else uid.value
        return User(text=f"{uid.value}:{group}", reason="you, who may read the model's files")
    if image is not None and image.user:
        return User(text=image.user, reason="the image's own user without root")
    return User(text="", reason="")
