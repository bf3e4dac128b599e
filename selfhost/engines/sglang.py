"""SGLang: arguments and environment for one server. Flags as 0.5.19 to 0.5.23 know them."""

import re

from selfhost.core.errors import InputError
from selfhost.engines.flags import Given, Vocabulary, read
from selfhost.engines.launch import Launch
from selfhost.engines.phases import ORDER
from selfhost.engines.planned import QUIET, Planned, beside, check_code, check_devices, grouped, replaced_by, thinking

KEY_VARIABLE = ""
"""None: SGLang takes a key from its command line or a file only, and prints it in its log and under /server_info
(SGLang 0.5.23: srt/entrypoints/engine.py, srt/entrypoints/http_server.py). So it has none, and listens on loopback."""
PHASES = ORDER

_NAME = "sglang"
_SIZES = ("--tp-size", "--pp-size", "--dp-size")

# Unlike vLLM, `fp8` is also the name for weights that are rounded while they are loaded: per channel where a kernel
# takes that (SGLang 0.5.23: srt/layers/quantization/fp8.py).
_PRECISION: dict[str, tuple[str, ...]] = {
    "checkpoint": (),
    "bf16": ("--dtype", "bfloat16"),
    "fp16": ("--dtype", "float16"),
    "fp32": ("--dtype", "float32"),
    "fp8": ("--quantization", "fp8"),
    "fp8_per_channel": ("--quantization", "fp8"),
}
# Its parser refuses `fp8`, and has no name for 16-bit floats: `auto` is what the model computes in.
_KV_PRECISION = {
    "": "",
    "auto": "",
    "checkpoint": "",
    "fp16": "",
    "float16": "",
    "bf16": "bfloat16",
    "fp8": "fp8_e4m3",
}
"""Other names are SGLang's own."""


def argv(launch: Launch) -> tuple[str, ...]:
    """Arguments behind `sglang serve` or `python -m sglang.launch_server`. Raises InputError."""
    given = _given(launch)
    return beside(_planned(launch), given, replaced=replaced_by(given, vocabulary=Vocabulary.load(_NAME)))


def env(launch: Launch) -> dict[str, str]:
    """Variables to add; there is no key to hand over."""
    variables = {**QUIET, **launch.reasoning.env}
    if launch.backend == "cuda":
        # Without it CUDA numbers cards by speed, NVML by PCI address (CUDA C programming guide, environment variables).
        variables["CUDA_DEVICE_ORDER"] = "PCI_BUS_ID"
    return variables


def overridden(extra: tuple[str, ...]) -> dict[str, str]:
    """The user's flags by full name with their values; switches are `true`. Raises InputError."""
    return {flag.name: flag.value for flag in read(extra, vocabulary=Vocabulary.load(_NAME))}


def moves_memory(extra: tuple[str, ...]) -> tuple[str, ...]:
    """Those of the user's flags after which the memory arithmetic has to run again."""
    vocabulary = Vocabulary.load(_NAME)
    names = [flag.name for flag in read(extra, vocabulary=vocabulary)]
    return tuple(name for name in names if (known := vocabulary.flag(name)) and known.moves_memory)


def count(text: str) -> int | None:
    """A number as SGLang's flags take it (`32k` is 32,000, `32Ki` is 32,768); None for anything else, as `32K`."""
    units = {"": 1, "k": 10**3, "M": 10**6, "G": 10**9, "T": 10**12}
    units.update({"Ki": 2**10, "Mi": 2**20, "Gi": 2**30, "Ti": 2**40})
    found = re.fullmatch(r"(\d+(?:\.\d+)?)(Ki|Mi|Gi|Ti|k|M|G|T|)", text.strip())
    if found is None or ("." in found[1] and found[2] not in ("k", "M", "G", "T")):
        return None
    return int(float(found[1]) * units[found[2]])


def _planned(launch: Launch) -> Planned:
    return [
        ("--model-path", launch.model_path),  # a path, never a hub id: the weights were checked there
        ("--host", launch.address),
        ("--port", str(launch.port)),  # its own default is 30000
        ("--served-model-name", launch.served_name),
        ("--context-length", str(launch.context)),  # plain: `32K`, which vLLM takes, is an error here
        ("--max-running-requests", str(launch.concurrency)),
        *_precision(launch),
        *_memory(launch),
        *_parallel(launch),
        *_reasoning_and_tools(launch),
        *((("--trust-remote-code",),) if launch.trust_remote_code else ()),
        *((("--allowed-media-domains", *launch.media_domains),) if launch.media_domains else ()),
        ("--enable-metrics",),  # off by default, and then /metrics answers 404
        # Health is asked every second while the engine starts; those lines would bury the others.
        ("--uvicorn-access-log-exclude-prefixes", "/health", "/metrics"),
    ]


def _precision(launch: Launch) -> Planned:
    wanted = launch.weights_precision
    if wanted not in _PRECISION:
        raise InputError(
            f"SGLang has no weights precision `{wanted}`",
            why=f"selfhost knows {', '.join(_PRECISION)}.",
            fix=("for another form use the engine's own name:\nselfhost up MODEL -- --quantization NAME",),
            id="PL065",
        )
    flags: Planned = [_PRECISION[wanted]] if _PRECISION[wanted] else []
    kv = _KV_PRECISION.get(launch.kv_precision, launch.kv_precision)
    if kv:
        flags.append(("--kv-cache-dtype", kv))
    return [*flags, *grouped(launch.quantization_flags)]


def _memory(launch: Launch) -> Planned:
    flags: Planned = []
    if launch.gpu_memory_utilization is not None:
        flags.append(("--mem-fraction-static", f"{launch.gpu_memory_utilization:g}"))
    if launch.kv_cache_tokens:
        flags.append(("--max-total-tokens", str(launch.kv_cache_tokens)))
    return flags


def _parallel(launch: Launch) -> Planned:
    cut = launch.cut
    sizes = zip((*_SIZES, "--attn-dp-size"), (cut.tensor, cut.pipeline, cut.data, cut.attention_data), strict=True)
    flags: Planned = [(name, str(size)) for name, size in sizes if size > 1]
    if cut.expert:
        # Experts are divided over the whole tensor group or not at all (SGLang 0.5.23: arg_groups/parallel_hook.py).
        flags.append(("--ep-size", str(cut.tensor)))
    return flags


def _reasoning_and_tools(launch: Launch) -> Planned:
    flags = thinking(launch.reasoning)
    if launch.tool_parser:
        flags.append(("--tool-call-parser", launch.tool_parser))
    return flags


def _given(launch: Launch) -> tuple[Given, ...]:
    given = read(launch.extra, vocabulary=Vocabulary.load(_NAME))
    asked = {flag.name: flag.value for flag in given}
    check_code(launch, asked)
    check_devices(launch, asked, sizes=_SIZES, count=count)
    return given
