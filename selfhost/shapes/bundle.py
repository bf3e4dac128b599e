"""Rendered files."""

import hashlib
from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Bundle:
    """Rendered files by relative path; `executable` names those to be marked so."""

    files: dict[str, str]
    executable: frozenset[str] = frozenset()

    @property
    def digest(self) -> str:
        """SHA-256 over paths and contents, in path order."""
        total = hashlib.sha256()
        for path in sorted(self.files):
            total.update(f"{path}\0{len(self.files[path])}\0{self.files[path]}".encode())
        return total.hexdigest()
