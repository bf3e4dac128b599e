"""What an id means that selfhost prints: a row of the table of failures, a page, or a line of the reference."""

from selfhost.core.errors import InputError
from selfhost.core.resources import resource
from selfhost.engines.explain import rule
from selfhost.shapes.finding import Finding
from selfhost.visibility.suppress import as_id

_PLACE = "identifiers.md"


def page(id: str) -> Finding | str:
    """The fullest of what is written about `id`, in any case of letters. Raises InputError."""
    wanted = as_id(id)
    known = rule(wanted) or _written(wanted) or _listed(wanted)
    if known:
        return known
    raise InputError(
        f"there is no id {wanted}",
        why="Ids are two capital letters and three digits, some with a small letter behind, as findings print them.",
        fix=("look at a log instead:\nselfhost explain engine.log",),
        id="CF082",
    )


def _written(id: str) -> str:
    """A rule's own page."""
    try:
        return resource("rules", f"{id}.md").read_text(encoding="utf-8")
    except FileNotFoundError:
        return ""


def _listed(id: str) -> str:
    """What it says and where it is raised, out of the reference that is generated from the code."""
    family = ""
    for line in resource("reference", _PLACE).read_text(encoding="utf-8").splitlines():
        if line.startswith("## "):
            family = line.removeprefix("## ").partition(": ")[2]
        elif line.startswith(f"| {id} |"):
            _, _, rest = line.partition(f"| {id} | ")
            says, _, places = rest.removesuffix(" |").rpartition(" | ")
            return _in_words(id, says.replace("\\|", "|"), family=family, places=places.replace("`", ""))
    return ""


def _in_words(id: str, says: str, *, family: str, places: str) -> str:
    head, *others = says.split(" / ") if says else ["(its words depend on what was seen)"]
    lines = [f"{id}: {head}", *(f"       {other}" for other in others)]
    return "\n".join([*lines, f"  about       {family}", f"  defined in  {places}"])
