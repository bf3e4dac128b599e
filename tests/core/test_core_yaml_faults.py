"""YAML and JSON that cannot be read: which line, what is wrong there, what to do."""

import pytest

from selfhost.core.errors import InputError
from selfhost.core.jsonc import tree_of_jsonc
from selfhost.core.yaml import documents

LAUGHS = "a0: &a0 [x,x,x,x,x,x,x,x,x,x]\n" + "".join(
    f"a{n}: &a{n} [{','.join([f'*a{n - 1}'] * 10)}]\n" for n in range(1, 9)
)


@pytest.mark.parametrize(
    ("text", "id", "place", "says", "fix"),
    [
        ("a:\n\tb: 1\n", "CF050", (2, 1), "a tab", "spaces"),
        ("a: b\n\tc: d\n", "CF050", (2, 1), "a tab", "spaces"),
        ("a: @x\n", "CF050", (1, 4), "keeps for itself", "quotes"),
        ("a: `x`\n", "CF050", (1, 4), "keeps for itself", "quotes"),
        ("a: b: c\n", "CF050", (1, 5), "no key may begin", "quotes"),
        ("a:\n  b: 1\n c: 2\n", "CF050", (3, 2), "fits neither", "indent"),
        ("a: 1\nb: [1,\n 2\n", "CF050", (2, 4), "`[` is not closed", "close"),
        ("a: {x: 1\n", "CF050", (1, 4), "`{` is not closed", "close"),
        ("a:\n  - 'x\n  - y\n", "CF050", (2, 5), "a quote is not closed", "close"),
        ("- a\nb: 1\n", "CF050", (2, 1), "among the elements", "indent"),
        ('a: "C:\\dir"\n', "CF050", (1, 7), "backslash", "single quotes"),
        ("a: 1\nb\n", "CF050", (2, 1), "no `:`", ""),
        ("a: *x\n", "CF050", (1, 4), "no anchor `&x`", "quotes"),
        ("b: &vllm 1\na: *vlm\n", "CF050", (2, 4), "no anchor", "perhaps `*vllm`"),
        ("a: {b: ${N:-3}}\n", "CF050", (1, 9), "the `{` of line 1 is neither closed", "quotes"),
        ("<<: 3\n", "CF050", (1, 5), "`<<` merges a map", ""),
        ("? [a]\n: b\n", "CF050", (1, 3), "where a key belongs", ""),
        ("x: {{ .Values.y }}\n", "CF050", (1, 5), "", "render"),
        ("a: 1\nb: 2\na: 3\n", "CF051", (3, 1), "`a` is already said in line 1", "lines 1 and 3"),
        ('{"a": {"b": 1,\n "b": 2}}', "CF051", (2, 2), "`b` is already said in line 1", ""),
        ("x: &x {a: 1}\ny:\n  <<: *x\n  b: 1\n  <<: *x\n", "CF051", (5, 3), "`<<` is already", ""),
        ("a: &a [*a]\n", "CF052", (1, 8), "inside its own anchor", ""),
        (LAUGHS, "CF052", (6, 22), "500,000", "write"),
        ("[" * 100_000, "CF052", (1, 201), "200 levels", ""),
        ("- " * 3000, "CF052", (1, 401), "200 levels", ""),
        ('{"a":' * 50_000, "CF052", (1, 1001), "200 levels", ""),
        ("a: 1\nb: x\0y\n", "CF053", (2, 5), "U+0000", "UTF-8"),
        ("a: \x7f\n", "CF053", (1, 4), "U+007F", ""),
        ("a: \ud800\n", "CF053", (1, 4), "U+D800", ""),
        ('{"a": "\udfff"}', "CF053", (1, 8), "U+DFFF", ""),
        ("\x1f\x8b\x08", "CF053", (1, 1), "U+001F", ""),
    ],
)  # fmt: skip
def test_a_fault_is_named_with_its_place(text: str, id: str, place: tuple[int, int], says: str, fix: str) -> None:
    with pytest.raises(InputError) as caught:
        documents(text, path="x.yaml")
    error = caught.value
    assert error.place
    assert (error.id, error.place.path, (error.place.line, error.place.column)) == (id, "x.yaml", place)
    assert says in error.what
    assert fix in error.fix[0]
    assert error.why


def test_a_key_in_a_broken_line_is_not_repeated() -> None:
    with pytest.raises(InputError) as caught:
        documents("a: b: --api-key sk-not-a-real-key-0123456789\n", path="x.yaml")
    assert "***" in caught.value.evidence
    assert "not-a-real" not in str(caught.value.__dict__)


def test_settings_of_editors_may_hold_comments_and_a_last_comma() -> None:
    tree = tree_of_jsonc('// x\n{"a": [1, "//no", /* y\n */ null,],\n "b": -1.5e3, "c": {}, "d": []}\n', path="x")
    assert tree.data == {"a": [1, "//no", None], "b": -1500.0, "c": {}, "d": []}
    found = tree.at("b")
    assert found
    assert (found.line, found.column) == (4, 7)


@pytest.mark.parametrize(
    ("text", "place", "says"),
    [
        ("", (1, 1), "a value is missing"),
        ('{"a": 1\n', (2, 1), "`{` of line 1 is not closed"),
        ('{"a": [1\n', (2, 1), "`[` of line 1 is not closed"),
        ('{"a" 1}', (1, 6), "`:` is missing"),
        ('{"a": 1 "b": 2}', (1, 9), "`,` is missing"),
        ("{a: 1}", (1, 2), "no JSON"),
        ("{1: 1}", (1, 2), "double quotes"),
        ('{"a": 1}}', (1, 9), "behind the end"),
        ('{"a": 1]', (1, 8), "closes nothing"),
        ('{"a": }', (1, 7), "closes nothing"),
        ("{,}", (1, 2), "no place"),
        ("[1,,2]", (1, 4), "no place"),
        ('{"a": "x\n"}', (1, 7), "a quote is not closed"),
        ('{"a": "\\q"}', (1, 7), "backslash"),
        ('{"a": 01}', (1, 7), "no number"),
        ('{"a": 1} x', (1, 10), "no JSON"),
        ("/* open", (1, 1), "no JSON"),
    ],
)  # fmt: skip
def test_a_fault_in_json_is_named_with_its_place(text: str, place: tuple[int, int], says: str) -> None:
    with pytest.raises(InputError) as caught:
        tree_of_jsonc(text, path="x.json")
    error = caught.value
    assert error.place
    assert (error.id, (error.place.line, error.place.column)) == ("CF050", place)
    assert says in error.what
