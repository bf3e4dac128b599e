"""A model as the catalog alone knows it: for plans about a model that nobody has looked at."""

from dataclasses import replace

from selfhost.core.names import slug
from selfhost.models.catalog import CatalogRow
from selfhost.models.checkpoints import Checkpoint
from selfhost.models.families import family_of
from selfhost.shapes.host import Known, Unknown
from selfhost.shapes.model import Model, Origin


def listed(row: CatalogRow) -> Model:
    """The row's own model, unpinned."""
    return Model(
        ref=row.alias or row.id,
        id=row.id,
        alias=row.alias,
        served_name=row.alias or slug(row.id),
        origin=Origin.HUB,
        revision=Unknown("only planned"),
        architecture=row.architecture,
        family=family_of(row.id),
        geometry=Known(row.geometry, row.source),
        dtype=Known(row.native, row.source),
        weights_bytes=row.weights_bytes,
        params_b=Known(row.params_b, row.source),
        active_b=Known(row.active_b, row.source),
        context_native=Known(row.context, row.source),
        has_chat_template=Unknown("the model's files are not on this machine"),
        licence=row.licence,
        gated=row.gated,
        demonstration=row.demonstration,
        scheme=row.stored or row.native,
        quant_form="block" if row.stored == "fp8_block" else "",
    )


def as_checkpoint(model: Model, other: Checkpoint) -> Model:
    """The same model as another repository publishes it; its own files were not read."""
    unread = Unknown(f"the files of {other.id} were not read")
    return replace(
        model, ref=other.id, id=other.id, alias="", served_name=slug(other.id), origin=Origin.HUB, path="",
        revision=Unknown("only planned"), dtype=Known(other.precision, other.source), weights_bytes=unread,
        scheme=other.scheme, quant_form=other.reach, tensors=None, demonstration=False,
    )  # fmt: skip
