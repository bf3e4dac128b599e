"""The files beside a text that it names itself: an env_file, `.env`, an extended Compose file."""

from typing import Final, Protocol


class Files(Protocol):
    """Handed to a reader, which opens nothing itself."""

    def text(self, path: str) -> str | None:
        """What is in `path`: absolute, or relative to the folder of the text that is read; None when it is not there.

        A reader that follows one file into another joins their folders itself: `common/base.yaml`, then `common/.env`.
        """
        ...


class _NoFiles:
    def text(self, path: str) -> str | None:  # noqa: ARG002 - the Protocol's signature
        return None


NO_FILES: Final[Files] = _NoFiles()
