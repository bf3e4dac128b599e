"""Rendered files beside those on a disk."""

from selfhost.render.check import differences
from selfhost.shapes.bundle import Bundle

BUNDLE = Bundle(files={"compose.yaml": "a\nb\nc\n", "README.txt": "x\n", "new": "n\n"})


def test_what_is_the_same_is_not_told() -> None:
    assert differences(BUNDLE, dict(BUNDLE.files)) == ()


def test_each_state_with_a_diff_from_the_disk_to_the_plan() -> None:
    found = differences(BUNDLE, {"compose.yaml": "a\nB\nc\n", "README.txt": "x\n", "new": None, "old": "o\n"})
    assert [(one.path, one.state) for one in found] == [
        ("compose.yaml", "changed"), ("new", "missing"), ("old", "extra"),
    ]  # fmt: skip
    assert found[0].diff.splitlines() == [
        "--- compose.yaml (on disk)", "+++ compose.yaml (from the plan)", "@@ -1,3 +1,3 @@", " a", "-B", "+b", " c",
    ]  # fmt: skip
    assert found[1].diff.splitlines()[0] == "--- /dev/null"
    assert found[2].diff.splitlines()[-1] == "-o"


def test_a_file_that_was_never_asked_for_counts_as_missing() -> None:
    assert [one.state for one in differences(BUNDLE, {})] == ["missing"] * 3


def test_only_a_line_feed_at_the_end_or_a_carriage_return_is_a_difference_that_is_seen() -> None:
    bundle = Bundle(files={"f": "a\n"})
    assert "No newline" in differences(bundle, {"f": "a"})[0].diff
    assert "-a\\r" in differences(bundle, {"f": "a\r\n"})[0].diff
    assert differences(Bundle(files={"f": "a\x0bb\n"}), {"f": "a\x0bb\n"}) == ()


def test_an_empty_file_is_not_a_missing_one() -> None:
    assert differences(Bundle(files={"f": ""}), {"f": ""}) == ()
    assert differences(Bundle(files={"f": ""}), {"f": None})[0].state == "missing"
