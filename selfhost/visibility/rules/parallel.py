"""As many devices as the engine will spread over."""

from collections.abc import Iterator, Sequence

from selfhost.shapes.finding import Place, Severity
from selfhost.shapes.host import Host
from selfhost.shapes.workload import Workload
from selfhost.visibility.rule import Found, rule
from selfhost.visibility.rules.masks import ordinals

SOURCE = "https://github.com/vllm-project/vllm/issues/12132"
_SIZES = (
    ("--tensor-parallel-size", "-tp", "--tp-size", "--tp"),
    ("--pipeline-parallel-size", "-pp", "--pp-size"),
    ("--data-parallel-size", "-dp", "--dp-size"),
)


def value_of(argv: Sequence[str], names: Sequence[str]) -> str | None:
    """The value of the last of `names` in `argv`, in both spellings (`--x 2`, `--x=2`)."""
    found = None
    for at, word in enumerate(argv):
        name, equals, value = word.partition("=")
        if name.replace("_", "-") in names:
            found = value if equals else argv[at + 1] if at + 1 < len(argv) else None
    return found


@rule("DV023", Severity.ERROR, source=SOURCE)
def more_parts_than_devices(workload: Workload, host: Host | None) -> Iterator[Found]:
    if host is None or not host.usable_accelerators:
        return
    parts, said = 1, []
    for names in _SIZES:
        value = value_of(workload.argv, names) or ""
        if value.isdigit():
            parts *= int(value)
            said.append(f"{names[0]} {value}")
    mask = ordinals(workload.env.get("CUDA_VISIBLE_DEVICES", ""))
    count = len(host.usable_accelerators) if mask is None else min(len(mask), len(host.usable_accelerators))
    if parts > count:
        yield Found(
            title=f"the engine wants {parts} devices; {count} can be seen",
            place=Place(path=workload.path, object=workload.name),
            evidence=" · ".join(said),
            why="Tensor, pipeline and data parallel sizes multiply, and each part takes a device of its own.",
            fix=(f"make the product of the sizes {count}, or let the process see more devices",),
        )
