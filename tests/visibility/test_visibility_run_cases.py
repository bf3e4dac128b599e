"""Run lines, Quadlet units and batch scripts as people write them; beside each what it means, by hand."""

import json
from dataclasses import asdict
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from selfhost.core.errors import InputError
from selfhost.shapes.workload import Workload
from selfhost.visibility.files import NO_FILES
from selfhost.visibility.sources import read_source

CASES = Path(__file__).parent.parent / "cases" / "readers"
TEXTS = sorted(
    path for form in ("run", "quadlet", "batch") for path in (CASES / form).iterdir() if path.suffix != ".json"
)


class Beside:
    def text(self, path: str) -> str | None:
        return {"llm.env": "FROM_FILE=yes\n# a remark\nCUDA_VISIBLE_DEVICES=7\n"}.get(path)


def read(path: Path) -> tuple[Workload, ...]:
    from selfhost.visibility.readers import batch, quadlet, run

    reader = {"run": run, "quadlet": quadlet, "batch": batch}[path.parent.name]
    return reader.read(path.read_text(encoding="utf-8"), path=path.name, files=Beside())


def as_data(workload: Workload) -> dict[str, Any]:
    lines = {key: spot.line for key, spot in workload.at.items()}
    return {**json.loads(json.dumps(asdict(workload))), "lines": lines}


@pytest.mark.parametrize("path", TEXTS, ids=lambda path: f"{path.parent.name}/{path.name}")
def test_a_text_means_what_stands_beside_it(path: Path) -> None:
    found = [as_data(workload) for workload in read(path)]
    wanted = json.loads(path.with_suffix(".json").read_text(encoding="utf-8"))
    assert len(found) == len(wanted)
    for seen, expected in zip(found, wanted, strict=True):
        lines = expected.pop("lines", {})
        assert {key: seen[key] for key in expected} == expected
        assert {key: seen["lines"].get(key) for key in lines} == lines


@pytest.mark.parametrize("path", TEXTS, ids=lambda path: f"{path.parent.name}/{path.name}")
def test_every_key_has_a_place_inside_the_text(path: Path) -> None:
    lines = path.read_text(encoding="utf-8").splitlines()
    for workload in read(path):
        assert "name" in workload.at
        for key, spot in workload.at.items():
            if not spot.path:
                assert 1 <= spot.line <= len(lines), key
                assert 1 <= spot.column <= len(lines[spot.line - 1]) + 1, key


SEEDS = [path.read_text(encoding="utf-8") for path in TEXTS]
WORDS = st.sampled_from(
    ["docker run ", "podman run ", "--gpus ", '"', "'", "\\\n", "$", "${", "}", "$(", ")", "`", "(", "<<E\n", "A=(",
     "-e ", "[Container]\n", "Exec=", "Image=", "%", "AddDevice=", "srun ", "apptainer exec ", "--env ", "=", ",", "\n",
     "\0", "\ud800",
     "#SBATCH -", "if ", "fi", "&&", "((", "--", "${X:-", "bash -c '", "\r\n", "é"]
)  # fmt: skip


@settings(max_examples=300, deadline=None)
@given(
    seed=st.sampled_from(SEEDS),
    cut=st.integers(0, 900),
    parts=st.lists(WORDS, max_size=12),
    name=st.sampled_from(["a.sh", "a.container", "a.service", "a.md", "a.kube", "stdin"]),
)
def test_whatever_is_read_only_an_input_error_escapes(seed: str, cut: int, parts: list[str], name: str) -> None:
    text = seed[:cut] + "".join(parts) + seed[cut:]
    refused = ""
    try:
        read_source(text, path=name, files=NO_FILES)
    except InputError as error:
        refused = error.id
    assert refused in ("", "CF021", "CF022", "CF054", "CF056")
