"""Data written as YAML comes back as it was, from our own reader and from PyYAML; reasons stand above their keys."""

import yaml
from hypothesis import given, settings
from hypothesis import strategies as st

from selfhost.core.yaml import documents
from selfhost.render.yaml_tree import WIDTH, dump
from tests.fakes.workloads import TEXT

SCALARS = TEXT | st.integers(-(2**53), 2**53) | st.booleans() | st.none()
SCRIPT = "import os\n\nif os.environ:\n    print('x')\n"


def nothing(_path):
    return ""


def trees():
    values = st.recursive(
        SCALARS | st.just(SCRIPT),
        lambda inner: st.lists(inner, max_size=4) | st.dictionaries(TEXT.filter(bool), inner, max_size=4),
        max_leaves=12,
    )
    return st.dictionaries(st.sampled_from(["args", "spec", "on", "metadata", "labels", "x"]), values, max_size=4)


@settings(max_examples=200, deadline=None)
@given(tree=trees().filter(bool))
def test_a_tree_comes_back_as_it_was(tree):
    text = dump(tree, nothing)
    assert yaml.safe_load(text) == tree
    assert documents(text, path="it")[0].data == tree


def test_a_script_stays_readable_and_whole():
    text = dump({"args": [SCRIPT]}, nothing)
    assert text == "args:\n  - |\n    import os\n\n    if os.environ:\n        print('x')\n"


def test_a_command_line_has_one_line_for_each_flag():
    text = dump({"args": ["/model", "--port", "8000", "--a", "x" * 80]}, nothing)
    assert text.splitlines() == ["args: [", "  /model,", '  --port, "8000",', f"  --a, {'x' * 80},", "]"]


def test_reasons_stand_above_their_keys_and_open_what_would_be_one_line():
    reasons = {("a", "b"): "because " * 30}
    text = dump({"a": {"b": "1Gi", "c": 2}}, lambda path: reasons.get(path, ""))
    lines = text.splitlines()
    assert lines[0] == "a:"
    assert all(line.startswith("  # ") and len(line) <= WIDTH for line in lines[1:-2])
    assert lines[-2:] == ["  b: 1Gi", "  c: 2"]


def test_a_reason_never_becomes_data():
    text = dump({"a": 1}, lambda _path: "x\nb: 2")
    assert yaml.safe_load(text) == {"a": 1}
