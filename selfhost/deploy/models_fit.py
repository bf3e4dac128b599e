"""Which models of the catalog fit a machine: each is decided as `plan` would, from the catalog's facts alone."""

from collections.abc import Iterator
from dataclasses import dataclass, replace

from selfhost.core.errors import EnvironmentMissing, InputError
from selfhost.models.catalog import CatalogRow
from selfhost.models.listed import listed
from selfhost.models.table import named
from selfhost.plan.decide import Decided, decide_all
from selfhost.shapes.host import Host
from selfhost.shapes.service import Service


@dataclass(frozen=True, slots=True, kw_only=True)
class Judged:
    """One row; `refused` says why nothing was decided, and is empty otherwise."""

    row: CatalogRow
    decided: Decided | None = None
    refused: str = ""


def judged(host: Host, service: Service) -> Iterator[Judged]:
    """Every model with an alias, smallest first. `service` carries the wish; its model is replaced."""
    for row in named():
        wish = replace(service, model=row.alias, name=row.alias)
        try:
            found = decide_all(host=host, model=listed(row), service=wish, port=service.port or 8000)
        except (InputError, EnvironmentMissing) as error:
            yield Judged(row=row, refused=error.what)
        else:
            yield Judged(row=row, decided=found)
