"""Where rendered files will lie and what was looked up there: facts of one machine, no decisions."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Place:
    """Absolute paths of the machine that the files are for. Nothing in it is secret."""

    folder: str = ""
    """The bundle's own folder; empty while nobody knows."""
    key_file: str = ""
    """Holds the key alone, one line, mode 0600."""
    env_file: str = ""
    """Holds `VARIABLE=key`, mode 0600; empty for an engine that takes no key."""
    python: str = ""
    """The engine's interpreter, for the target `process`."""
    image_digest: str = ""
    """`sha256:…` of the image as it was resolved on this machine; empty until it was."""
    checked: bool = False
    """A start of this plan was checked here: from then on it may be started again by itself."""
