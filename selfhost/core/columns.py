"""Rows of text as lines whose columns stand below each other."""

from collections.abc import Iterable, Sequence

from selfhost.core.terminal import cells


def columns(rows: Iterable[Sequence[str]], *, right: frozenset[int] = frozenset(), gap: str = "  ") -> list[str]:
    """Rows as lines with aligned columns; `right` names those aligned to the right. Painted cells count as shown."""
    table = [list(row) for row in rows]
    widths = [
        max(cells(row[index]) for row in table if index < len(row)) for index in range(max(map(len, table), default=0))
    ]
    return [
        gap.join(
            " " * (width - cells(cell)) + cell if index in right else cell + " " * (width - cells(cell))
            for index, (cell, width) in enumerate(zip(row, widths, strict=False))
        ).rstrip()
        for row in table
    ]
