"""Machines and models as facts, for tests of what is decided from them. Figures from public configs and logs."""

from dataclasses import replace
from typing import Any

from selfhost.models.families import family_of
from selfhost.shapes.host import Accelerator, Cpu, Host, Known, Memory, Support, Unknown, Vendor
from selfhost.shapes.model import Geometry, Model, Origin
from selfhost.shapes.service import Service

GIB = 1024**3


def a_host(
    *, gib: float = 16, cores: float = 2, features: tuple[str, ...] = ("avx2", "avx512f", "avx512_bf16"), **more: Any
) -> Host:
    """A machine without accelerators, all of its memory available."""
    size = int(gib * GIB)
    memory = Memory(
        total=Known(size, "/proc/meminfo"), available=Known(size, "/proc/meminfo"), limit=Known(size, "total")
    )
    cpu = Cpu(
        model="Test CPU", architecture="x86_64", cores=Known(cores, "affinity"), cores_online=2, features=features
    )
    facts: dict[str, Any] = {"os": "Debian 12", "kernel": "6.1", "python": "3.11", "cpu": cpu, "memory": memory}
    return Host(**{**facts, **more})


def a_card(
    index: int = 0,
    *,
    name: str = "NVIDIA GeForce RTX 4090",
    vendor: Vendor = Vendor.NVIDIA,
    arch: str = "sm_89",
    gib: float = 23.52,
    free_gib: float | None = None,
) -> Accelerator:
    total = int(gib * GIB)
    return Accelerator(
        index=index,
        vendor=vendor,
        name=name,
        pci=f"0000:0{index + 1}:00.0",
        uuid=f"GPU-6f1e2d3c-0000-0000-0000-00000000000{index}",
        arch=Known(arch, "test"),
        memory_total=Known(total, "nvml"),
        memory_free=Known(total if free_gib is None else int(free_gib * GIB), "nvml"),
        support=Support.SUPPORTED,
        support_reason="",
        present=Known(True, "bus"),
        openable=Known(True, "open"),
        usable=Known(True, "nvml"),
    )


SMOLLM2 = Geometry(layers=30, full_layers=30, hidden=576, heads=9, kv_heads=3, head_dim=64, vocab=49152)
QWEN3_4B = Geometry(
    layers=36, full_layers=36, hidden=2560, heads=32, kv_heads=8, head_dim=128, vocab=151936, intermediate=9728,
    tie=True,
)  # fmt: skip


def a_model(id: str = "Qwen/Qwen3-4B", **more: Any) -> Model:
    """A published model in BF16; by default the size, shape and context of Qwen3-4B."""
    facts: dict[str, Any] = {
        "ref": id,
        "id": id,
        "served_name": id.rpartition("/")[2].lower(),
        "origin": Origin.HUB,
        "revision": Known("0123456789abcdef0123456789abcdef01234567", "hub"),
        "path": "/models/it",
        "family": family_of(id),
        "geometry": Known(QWEN3_4B, "config.json"),
        "dtype": Known("bf16", "config.json"),
        "weights_bytes": Known(8_044_982_000, "safetensors headers"),
        "params_b": Known(4.022, "card"),
        "active_b": Known(4.022, "card"),
        "context_native": Known(40960, "config.json"),
        "has_chat_template": Known(True, "tokenizer_config.json"),
    }
    return Model(**{**facts, **more})


def smollm2(**more: Any) -> Model:
    facts = {
        "geometry": Known(SMOLLM2, "config.json"),
        "weights_bytes": Known(269_060_552, "safetensors headers"),
        "context_native": Known(8192, "config.json"),
        **more,
    }
    return a_model("HuggingFaceTB/SmolLM2-135M-Instruct", **facts)


def a_service(model: str = "Qwen/Qwen3-4B", **more: Any) -> Service:
    origins = {name: f"--{name.replace('_', '-')} {value}" for name, value in more.items() if name != "engine_args"}
    return Service(**{"model": model, "name": "it", "origins": origins, **more})


def with_memory(host: Host, *, limit_gib: float | None = None, available_gib: float | None = None) -> Host:
    memory = host.memory
    if limit_gib is not None:
        memory = replace(memory, limit=Known(int(limit_gib * GIB), "memory.max"))
    if available_gib is not None:
        memory = replace(memory, available=Known(int(available_gib * GIB), "/proc/meminfo"))
    return replace(host, memory=memory)


def without_facts(model: Model, *names: str) -> Model:
    changes: dict[str, Any] = {name: Unknown("the hub cannot be reached") for name in names}
    return replace(model, **changes)
