"""How many devices an engine spreads over, and how much of each it takes, by its flags. Pure."""

from collections.abc import Sequence
from dataclasses import dataclass, replace

from selfhost.shapes.workload import Workload
from selfhost.visibility.images import engine_of, known

TENSOR = ("--tensor-parallel-size", "-tp", "--tp-size", "--tp", "--num-shard")
"""The last is text-generation-inference's."""
PIPELINE = ("--pipeline-parallel-size", "-pp", "--pp-size")
DATA = ("--data-parallel-size", "-dp", "--dp-size")
DATA_LOCAL = ("--data-parallel-size-local", "-dpl")
CONTEXT = ("--prefill-context-parallel-size", "-pcp")
SIZES = (TENSOR, PIPELINE, DATA)
_ENGINES_OWN = ("--tensor-parallel-size", "--num-shard")
_PROGRAMS = ("trtllm-serve", "text-generation-launcher")
KV_BYTES = ("--kv-cache-memory-bytes", "--kv-cache-memory")
VLLM_SHARE = 0.9
"""Default of --gpu-memory-utilization before 0.92 came (vllm/config/cache.py): the least that any version takes."""
_OVER_MACHINES = (
    "--headless",
    "--data-parallel-address",
    "-dpa",
    "--data-parallel-start-rank",
    "-dpr",
    "--data-parallel-hybrid-lb",
    "--data-parallel-external-lb",
    "--dist-init-addr",
    "--node-rank",
)


def value_of(argv: Sequence[str], names: Sequence[str]) -> str | None:
    """The value of the last of `names` in `argv`, in both spellings (`--x 2`, `--x=2`)."""
    found = None
    for at, word in enumerate(argv):
        name, equals, value = word.partition("=")
        if name.replace("_", "-") in names:
            found = value if equals else argv[at + 1] if at + 1 < len(argv) else None
    return found


def size(argv: Sequence[str], names: Sequence[str]) -> int | None:
    """A parallel size that is a plain number; None when it is not given or not known before it runs."""
    text = value_of(argv, names) or ""
    return int(text) if text.isdigit() and int(text) > 0 else None


def world_size(workload: Workload) -> int:
    """Ranks on this machine: tensor × pipeline × local data parallel; 1 for what is not said."""
    data = size(workload.argv, DATA_LOCAL) or size(workload.argv, DATA) or 1
    return (size(workload.argv, TENSOR) or 1) * (size(workload.argv, PIPELINE) or 1) * data


@dataclass(frozen=True, slots=True, kw_only=True)
class Ranks:
    """Devices that an engine takes on its machine. `exact` is False when more may be said where we cannot read."""

    count: int
    exact: bool
    said: str
    """The flags, as written."""
    key: str
    """Spot of the first of them."""


def ranks(workload: Workload) -> Ranks | None:
    """None for what is no engine that we know, and for one that spreads over several machines."""
    engine = engine_of(workload)
    if not spreads(workload) or _several_machines(workload):
        return None
    shared = engine == "sglang" and "--enable-dp-attention" in workload.argv
    count, exact, said, key = 1, _serves(workload) and not _may_say_more(workload), [], "name"
    for names in (TENSOR, PIPELINE, CONTEXT, _data(workload)):
        text = value_of(workload.argv, names)
        if text is None or (shared and names[0].startswith("--data")):
            continue
        key = _key_of(workload, names) if key == "name" else key
        if text.isdecimal() and int(text) > 0:
            count *= int(text)
            said.append(f"{names[0]} {text}")
        else:
            exact = False
    return Ranks(count=count, exact=exact, said=" · ".join(said), key=key)


def spreads(workload: Workload) -> bool:
    """An engine that we know, or what takes the long flag that only engines of this kind have."""
    by_program = any(word.rpartition("/")[2] in _PROGRAMS for word in workload.argv[:6])
    return by_program or engine_of(workload) is not None or value_of(workload.argv, _ENGINES_OWN) is not None


def processes(workload: Workload) -> int:
    """Worker processes of the whole engine, as far as its flags say: more than one exchange through shared memory."""
    return world_size(workload) * (size(workload.argv, CONTEXT) or 1)


def _serves(workload: Workload) -> bool:
    """By its own command, or by that of the image: `bash` in an engine's image says nothing of its size."""
    image = known(workload.image) if workload.image else None
    shell = image is not None and image.base
    by_image = not shell and workload.entrypoint is None and (not workload.argv or workload.argv[0].startswith("-"))
    return engine_of(workload if by_image else replace(workload, image="")) is not None


def _data(workload: Workload) -> tuple[str, ...]:
    return DATA_LOCAL if value_of(workload.argv, DATA_LOCAL) is not None else DATA


def _several_machines(workload: Workload) -> bool:
    nodes = value_of(workload.argv, ("--nnodes", "-n"))
    ray = value_of(workload.argv, ("--distributed-executor-backend", "-deb")) == "ray"
    return (
        (nodes or "1") != "1"
        or ray
        or (workload.pod is not None and workload.pod.kind in ("LeaderWorkerSet", "RayCluster", "RayService"))
        or any(word.split("=")[0].replace("_", "-") in _OVER_MACHINES for word in workload.argv)
    )


def _may_say_more(workload: Workload) -> bool:
    return bool(workload.opaque) or any(
        word.startswith("$") or word.split("=")[0] in ("--config", "--additional-config") for word in workload.argv
    )


def _key_of(workload: Workload, names: Sequence[str]) -> str:
    for at, word in enumerate(workload.argv):
        if word.partition("=")[0].replace("_", "-") in names:
            return f"argv.{at}"
    return "name"


def memory_share(workload: Workload) -> float | None:
    """The part of each card's memory that the engine takes; None when that is not certain."""
    engine = engine_of(workload)
    flag = {"vllm": "--gpu-memory-utilization", "sglang": "--mem-fraction-static"}.get(engine or "")
    if flag is None:
        return None
    text = value_of(workload.argv, (flag,))
    if text is None:
        unsaid = engine == "sglang" or _may_say_more(workload) or value_of(workload.argv, KV_BYTES) is not None
        return None if unsaid else VLLM_SHARE
    try:
        share = float(text)
    except ValueError:
        return None
    return share if 0 < share <= 1 else None
