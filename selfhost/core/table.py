"""Facts that change with the world are TOML rows inside the package."""

import tomllib
from importlib.resources import files
from typing import Any


def read_table(package: str, name: str) -> dict[str, Any]:
    """The TOML file `name` that lies in `package`, as plain data for the one reader that turns it into shapes."""
    return tomllib.loads(files(package).joinpath(name).read_text(encoding="utf-8"))
