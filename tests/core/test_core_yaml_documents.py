"""YAML as data whose every value knows its place."""

import pytest
import yaml
from hypothesis import given, settings
from hypothesis import strategies as st

from selfhost.core.errors import InputError
from selfhost.core.tree import Tree, as_written
from selfhost.core.yaml import documents
from selfhost.shapes.workload import Spot


def one(text: str) -> Tree:
    (tree,) = documents(text, path="x.yaml")
    return tree


def at(tree: Tree | None, *path: str | int) -> Tree:
    found = tree.at(*path) if tree else None
    assert found, path
    return found


def test_keys_and_values_know_their_line_and_column() -> None:
    tree = one("a:\n  b: [1, two]\n  'c d': >\n    x\n    y\nz: {é: '𝄞', k: v}\n")
    assert tree.data == {"a": {"b": [1, "two"], "c d": "x y\n"}, "z": {"é": "𝄞", "k": "v"}}
    assert at(tree, "a", "b", 1).spot == Spot(line=2, column=10, path="x.yaml")
    assert at(tree, "a").key_spot("c d") == Spot(line=3, column=3, path="x.yaml")
    assert (at(tree, "a", "c d").line, at(tree, "a", "c d").end_line, at(tree, "a", "c d").block) == (3, 5, True)
    assert at(tree, "z", "k").column == 16


@pytest.mark.parametrize(
    ("text", "data", "line"),
    [
        ("\ufeffa: 1\r\nb: 2\r\n", {"a": 1, "b": 2}, 2),
        ("%YAML 1.2\n---\nb: 1\n", {"b": 1}, 3),
        ('{"a": [1,\t2],\n "b": "x\\/y"}', {"a": [1, 2], "b": "x/y"}, 2),
        ('{"b": "\\ud83d\\ude00"}', {"b": "😀"}, 1),
        ('{"b": "\\ud83d"}', {"b": "\N{REPLACEMENT CHARACTER}"}, 1),
        ("{a: b,\n b: c}", {"a": "b", "b": "c"}, 2),
        ("b: !custom {x: 1}\n", {"b": {"x": 1}}, 1),
        ("? b\n: 1\n", {"b": 1}, 2),
    ],
)
def test_what_files_of_other_programs_hold_is_read(text: str, data: object, line: int) -> None:
    tree = one(text)
    assert tree.data == data
    assert at(tree, "b").line == line


@pytest.mark.parametrize("text", ["", "# nothing\n", "---\n---\n", "---\n...\n", "\ufeff", "~\n"])
def test_a_text_that_says_nothing_has_no_documents(text: str) -> None:
    assert documents(text, path="x") == ()


def test_many_documents_keep_the_lines_of_the_text() -> None:
    trees = documents("a: 1\n---\n# x\n---\nb: 2\n--- [3]\n", path="x")
    assert [tree.data for tree in trees] == [{"a": 1}, {"b": 2}, [3]]
    assert at(trees[1], "b").line == 5


def test_merged_values_stand_where_they_are_written_and_lose_against_own_ones() -> None:
    tree = one("x: &x {a: 1, b: 1}\ny: &y {b: 2, c: 2}\nz:\n  c: 3\n  <<: [*x, *y]\nw: *x\n")
    assert at(tree, "z").data == {"a": 1, "b": 1, "c": 3}
    assert at(tree, "z", "b").spot == Spot(line=1, column=17, path="x.yaml")
    assert at(tree, "z").key_spot("b").column == 14
    assert at(tree, "w").data == {"a": 1, "b": 1}
    assert one("'<<': {a: 1}\n").data == {"<<": {"a": 1}}


@pytest.mark.parametrize(
    ("text", "value", "written"),
    [
        # what Go's YAML makes of it, and how Go prints that
        ("no", "no", "no"), ("yes", "yes", "yes"), ("True", True, "true"), ("FALSE", False, "false"), ("y", "y", "y"),
        ("0755", 493, "493"), ("0o17", 15, "15"), ("0x1F", 31, "31"), ("0b101", 5, "5"), ("0992", 992.0, "992"),
        ("22:22", "22:22", "22:22"), ("1_000", 1000, "1000"), ("1.10", 1.1, "1.1"), ("1e3", 1000.0, "1000"),
        ("-7", -7, "-7"), ("+.5", 0.5, "0.5"), ("2024-01-02", "2024-01-02", "2024-01-02"), ("0,1", "0,1", "0,1"),
        ("'0755'", "0755", "0755"), ("!!str 5", "5", "5"), ("8gb", "8gb", "8gb"), ("1.2.3", "1.2.3", "1.2.3"),
        ("~", None, ""), ("null", None, ""), ("''", "", ""), ("1" * 80, "1" * 80, "1" * 80), ("_1", "_1", "_1"),
        ("1e400", float("inf"), "inf"), (".inf", float("inf"), "inf"), ("-", "-", "-"), (".", ".", "."),
    ],
)  # fmt: skip
def test_scalars_are_what_compose_and_kubectl_see(text: str, value: object, written: str) -> None:
    tree = one(f"k: {text}\n") if text != "-" else one("k: '-'\n")
    assert (at(tree, "k").scalar, as_written(at(tree, "k"))) == (value, written)


@pytest.mark.parametrize(("text", "yes"), [("no", False), ("yes", True), ("on", True), ("'true'", True), ("2", False)])
def test_a_switch_may_be_said_in_the_words_of_yaml_1_1(text: str, yes: bool) -> None:
    assert one(f"k: {text}\n").yes("k") is yes


def test_tags_are_kept_beside_the_data() -> None:
    tree = one("a: !reset null\nb: !override [1]\nc: !!map {}\n")
    assert [at(tree, key).tag for key in "abc"] == ["!reset", "!override", ""]


def test_a_path_that_ends_early_is_nothing() -> None:
    tree = one("a: {b: [1]}\n")
    assert tree.at("a", "x", "y") is tree.at("a", "b", 7) is tree.at("a", 0) is tree.at("a", "b", "c") is None
    assert (tree.said("a"), tree.said("a", "b", 0), list(at(tree, "a").elements())) == ("", "1", [])


def test_five_megabytes_are_read() -> None:
    text = "a:\n" + "".join(f"- {{name: n{number}, values: [1, 2, 3]}}\n" for number in range(40_000))
    assert len(at(one(text), "a").list or ()) == 40_000


def test_without_libyaml_the_same_comes_out(monkeypatch: pytest.MonkeyPatch) -> None:
    text = "a: &x [1, 'b']\nc: {<<: {k: v}, d: *x}\n"
    fast = one(text)
    monkeypatch.delattr(yaml, "CSafeLoader")
    assert one(text) == fast
    with pytest.raises(InputError) as caught:
        documents("a: [", path="x")
    assert caught.value.id == "CF050"
    with pytest.raises(InputError) as caught:
        documents("a: \0", path="x")
    assert caught.value.id == "CF053"


VALUES = st.recursive(
    st.none() | st.booleans() | st.integers(-(10**9), 10**9) | st.text("abé :#-'\"\n{}[]&*!|>%@`~", max_size=12),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text("abkz <'\"#", max_size=5), inner, max_size=4),
    max_leaves=20,
)


@settings(max_examples=80, deadline=None)
@given(
    data=st.dictionaries(st.text("abkz", min_size=1, max_size=5), VALUES, min_size=1, max_size=4), flow=st.booleans()
)
def test_what_a_dumper_writes_is_read_back(data: dict[str, object], flow: bool) -> None:
    text = yaml.safe_dump(data, default_flow_style=flow, allow_unicode=True)
    assert one(text).data == yaml.safe_load(text)


@settings(max_examples=300, deadline=None)
@given(text=st.text(st.sampled_from("ab:-[]{}&*!|>'\"%@`#?,<\t\n\r \\\0\ud800é~01.") | st.characters(), max_size=60))
def test_any_text_is_read_or_refused_with_its_place(text: str) -> None:
    try:
        documents(text, path="x")
    except InputError as error:
        place = error.place
        assert error.id in ("CF050", "CF051", "CF052", "CF053")  # noqa: PT017 - most texts are read
        assert place
        assert place.line
        assert place.line <= len(text.splitlines()) + 1
