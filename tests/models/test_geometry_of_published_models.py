"""config.json as published models write it → the same geometry as the catalog has."""

import json
from dataclasses import fields
from pathlib import Path
from typing import Any

import pytest

from selfhost.models import catalog, config
from selfhost.shapes.geometry import Geometry
from selfhost.shapes.host import Known

CONFIGS = sorted((Path(__file__).parent / "configs").glob("*.json"))
CARDS_OTHER_CONTEXT = {"deepseek-ai/DeepSeek-V2-Lite-Chat"}
"""The card promises 32,768 tokens; config.json, which engines read, has 163,840 positions."""


def read(path: Path, folder: Path) -> config.Config:
    (folder / "config.json").write_bytes(path.read_bytes())
    return config.read(folder)


def test_the_table_covers_the_kinds_of_networks() -> None:
    raws: list[dict[str, Any]] = [json.loads(path.read_bytes()) for path in CONFIGS]
    kinds = {(raw.get("text_config") or raw).get("model_type") for raw in raws}
    assert len(CONFIGS) >= 35
    assert {"llama", "gemma3_text", "gemma4_text", "llama4_text", "gpt_oss", "qwen3_next", "kimi_linear", "lfm2",
            "nemotron_h", "granitemoehybrid", "deepseek_v32", "hunyuan_v1_moe"} <= kinds  # fmt: skip


@pytest.mark.parametrize("path", CONFIGS, ids=lambda path: path.stem)
def test_config_and_catalog_describe_the_same_network(path: Path, tmp_path: Path) -> None:
    row = catalog.by_id(path.stem.replace("--", "/", 1))
    assert row is not None
    said = read(path, tmp_path)
    assert isinstance(said.geometry, Known)
    here = {one.name: getattr(said.geometry.value, one.name) for one in fields(Geometry)}
    there = {one.name: getattr(row.geometry, one.name) for one in fields(Geometry)}
    here["vision"], there["vision"] = bool(here["vision"]), bool(there["vision"])  # no config counts their parameters
    there["mm_profile_bytes"] = 0  # measured, in no config
    assert here == there
    assert said.architectures == (row.architecture.removesuffix(" (DSA)"),)
    if row.id not in CARDS_OTHER_CONTEXT:
        assert isinstance(said.context_native, Known)
        assert said.context_native.value == row.context
