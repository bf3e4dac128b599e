"""Whatever the tools print, cut off or garbled: no parser raises, and none invents a card of nothing."""

import json
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from selfhost.core.recorded import Recorded
from selfhost.hosts import amd_smi, kfd, nesting, rocm_smi, xpu_smi
from selfhost.hosts.detect import detect
from tests.hosts.fixture_machines import FIXTURES

PARSERS: tuple[Callable[[str], object], ...] = (
    amd_smi.parse,
    amd_smi.versions,
    amd_smi.links,
    rocm_smi.parse,
    rocm_smi.parse_rocminfo,
    xpu_smi.parse,
    xpu_smi.parse_sycl,
    xpu_smi.parse_clinfo,
)
OUTPUTS = sorted(path for room in ("amd", "intel") for path in (FIXTURES / room).iterdir() if path.is_file())
JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(max_size=8),
    lambda inner: (
        st.lists(inner, max_size=4)
        | st.dictionaries(
            st.sampled_from(["gpu", "gpu_data", "bus", "bdf", "vram", "size", "driver", "links", "link_type", "card0"])
            | st.sampled_from(
                ["device_list", "device_id", "partition", "process_list", "process_info", "pid", "system"]
            ),
            inner,
            max_size=5,
        )
    ),
    max_leaves=20,
)


@pytest.mark.parametrize("path", OUTPUTS, ids=lambda path: path.name)
def test_an_output_may_end_anywhere(path: Path) -> None:
    text = path.read_text()
    for end in range(0, len(text), max(1, len(text) // 60)):
        for parse in PARSERS:
            parse(text[:end])


@settings(max_examples=60, deadline=None)
@given(st.text(max_size=200))
def test_no_text_makes_a_parser_raise(text: str) -> None:
    for parse in PARSERS:
        parse(text)


@settings(max_examples=80, deadline=None)
@given(JSON)
def test_no_json_makes_a_parser_raise(tree: object) -> None:
    for parse in PARSERS:
        parse(json.dumps(tree))


@settings(max_examples=40, deadline=None)
@given(st.dictionaries(st.sampled_from(["simd_count", "gfx_target_version", "location_id", "device_id"]), st.text()))
def test_no_topology_makes_the_machine_raise(properties: dict[str, str]) -> None:
    text = "\n".join(f"{name} {value}" for name, value in properties.items())
    detect(Recorded({"files": {f"{kfd.NODES}/1/properties": text}}))


@settings(max_examples=40, deadline=None)
@given(st.text(max_size=120), st.text(max_size=80))
def test_no_mount_table_makes_the_nesting_raise(mounts: str, group: str) -> None:
    nesting.read(Recorded({"files": {"/proc/self/mountinfo": mounts, "/proc/self/cgroup": group}}))


def test_nothing_is_no_card() -> None:
    assert [parse("") for parse in PARSERS] == [(), ("", ""), (), (), (), (), (), ()]
