"""Where templates, playbooks and rule pages are: inside the wheel, or in the checkout of an editable install."""

from pathlib import Path

import selfhost


def resource(kind: str, relative: str) -> Path:
    """The file `relative` of `kind` (`templates`, `playbooks`, `rules`). Raises FileNotFoundError."""
    package = Path(selfhost.__file__).parent
    checkout = package.parent / ("docs/rules" if kind == "rules" else kind)
    for base in (package / "_data" / kind, checkout):
        if (base / relative).exists():
            return base / relative
    raise FileNotFoundError(f"{kind}/{relative}")
