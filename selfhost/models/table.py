"""The catalog as a table for people and for programs."""

from selfhost.core.columns import columns
from selfhost.models.catalog import CatalogRow, rows
from selfhost.shapes.host import Known
from selfhost.shapes.units import format_bytes, format_tokens


def named() -> list[CatalogRow]:
    """Rows with an alias, smallest first."""
    return sorted((row for row in rows() if row.alias), key=lambda row: (row.params_b, row.alias))


def lines() -> list[str]:
    head = ("name", "parameters", "weights", "context", "licence", "Hugging Face id")
    body = [
        (
            row.alias,
            _parameters(row),
            format_bytes(row.weights_bytes.value) if isinstance(row.weights_bytes, Known) else "unknown",
            format_tokens(row.context),
            row.licence + (" (gated)" if row.gated else ""),
            row.id,
        )
        for row in named()
    ]
    return columns([head, *body], right=frozenset({1, 2, 3}))


def _parameters(row: CatalogRow) -> str:
    whole = f"{row.params_b:.3g} B"
    return f"{whole}, {row.active_b:.3g} active" if row.active_b < row.params_b else whole


def as_json() -> dict[str, object]:
    """selfhost.models/1: sizes in bytes (estimates), context in tokens."""
    return {
        "schema": "selfhost.models/1",
        "ok": True,
        "models": [
            {
                "alias": row.alias,
                "id": row.id,
                "params_b": row.params_b,
                "active_b": row.active_b,
                "weights_bytes_estimate": row.weights_bytes.value if isinstance(row.weights_bytes, Known) else None,
                "context": row.context,
                "native": row.native,
                "licence": row.licence,
                "gated": row.gated,
                "source": row.source,
            }
            for row in named()
        ],
    }
