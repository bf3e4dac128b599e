"""Where templates, playbooks and pages are: inside the wheel, or in the checkout of an editable install."""

from pathlib import Path

import selfhost


def resource(kind: str, relative: str) -> Path:
    """The file `relative` of `kind` (`templates`, `playbooks`, `rules`, `reference`). Raises FileNotFoundError."""
    package = Path(selfhost.__file__).parent
    checkout = package.parent / (f"docs/{kind}" if kind in ("rules", "reference") else kind)
    for base in (package / "_data" / kind, checkout):
        if (base / relative).exists():
            return base / relative
    raise FileNotFoundError(f"{kind}/{relative}")
