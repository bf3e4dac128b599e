"""The user's home folder: as the environment says, else as the password database does."""

import os
from collections.abc import Mapping
from pathlib import Path

from selfhost.core.errors import EnvironmentMissing


def home(env: Mapping[str, str]) -> Path:
    """HOME when it is an absolute path, else the entry of the user we run as. Raises EnvironmentMissing."""
    named = Path(env.get("HOME", ""))
    if named.is_absolute():
        return named
    import pwd  # at use: HOME is nearly always set

    try:
        entry = Path(pwd.getpwuid(os.getuid()).pw_dir)
    except KeyError:
        entry = Path()
    if entry.is_absolute():
        return entry
    raise EnvironmentMissing(
        "this user has no home folder",
        why=f"HOME is not set to an absolute path, and the password database names no folder for user {os.getuid()}.",
        fix=("name a folder that this user may write to, then run the same command again:\nexport HOME=/path/to/it",),
        id="RT053",
    )
