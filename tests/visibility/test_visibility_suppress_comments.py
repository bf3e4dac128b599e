"""Comments that take findings back, and what is said of comments that do not."""

from dataclasses import replace

import pytest

from selfhost.shapes.finding import Finding, Place, Severity
from selfhost.visibility.files import NO_FILES
from selfhost.visibility.lint import lint_all
from selfhost.visibility.project import Source, judge
from selfhost.visibility.readers.scripted import read
from selfhost.visibility.suppress import kept

BAD = "vllm serve m --api-key k"


def findings(text: str, *, path: str = "x.sh", ignore: tuple[str, ...] = ()) -> list[tuple[str, int | None]]:
    judged = judge([Source(path=path, text=text)], host=None, beside=lambda _: NO_FILES, ignore=ignore)
    return [(finding.id, finding.place.line) for finding in judged.findings]


@pytest.mark.parametrize(
    "text",
    [
        f"# selfhost: ignore DV090 -- a lab without other users\n{BAD}\n",
        f"# selfhost: ignore DV090 -- two lines above\n\n# another remark\n{BAD}\n",
        f"{BAD} # selfhost: ignore DV090 -- behind it\n",
        f"# selfhost: ignore dv090, DV002 \N{EM DASH} two ids\nCUDA_VISIBLE_DEVICES=9 {BAD}\n",
        f"# selfhost: ignore-file DV090 -- everywhere\n{BAD}\n{BAD}2\n",
        "# selfhost: ignore DV090 -- the whole command\ndocker run \\\n  --name x \\\n  a/b --api-key k\n",
    ],
)
def test_a_finding_is_taken_back_by_a_comment_with_a_reason(text: str) -> None:
    assert findings(text) == []


def test_a_comment_above_a_continued_command_speaks_of_all_its_lines() -> None:
    text = "# selfhost: ignore DV090 -- inside the command no comment can stand\ndocker run \\\n  --name x \\\n  a/b\n"
    workloads = read(text, path="x.sh", files=NO_FILES)
    deep = Finding(id="DV090", severity=Severity.ERROR, title="t", place=Place(path="x.sh", line=4, object="x"))
    other = replace(deep, place=Place(path="x.sh", line=4, object="y"))
    left = kept((deep, other), path="x.sh", text=text, workloads=workloads, known={"DV090"})
    assert left == (other,)


@pytest.mark.parametrize(
    ("text", "left"),
    [
        (f"{BAD}\n{BAD}\n", [("DV090", 1), ("DV090", 2)]),
        (f"# selfhost: ignore DV090 -- the next only\n{BAD}\n{BAD}\n", [("DV090", 3)]),
        (f"# selfhost: ignore DV090\n{BAD}\n", [("CF055", 1)]),
        (f"# selfhost: ignore DV090 --  \n{BAD}\n", [("CF055", 1)]),
        (f"# selfhost: ignore DV777 -- why\n{BAD}\n", [("CF057", 1), ("DV090", 2)]),
        (f"# selfhost: ignore -- all of it\n{BAD}\n", [("CF057", 1), ("DV090", 2)]),
        ("# selfhost: ignore DV090 -- long gone\nvllm serve m\n", [("CF058", 1)]),
        # DV002 needs the machine: without one nobody knows whether it is unused
        ("# selfhost: ignore DV002 -- two cards\nCUDA_VISIBLE_DEVICES=1 vllm serve m\n", []),
    ],
)
def test_a_comment_is_taken_at_its_word_and_no_further(text: str, left: list[tuple[str, int]]) -> None:
    assert findings(text) == left


def test_ids_of_the_command_line_are_left_out_everywhere() -> None:
    assert findings(f"{BAD}\n", ignore=("DV090",)) == []


def test_one_broken_text_is_a_finding_and_the_others_are_still_judged() -> None:
    sources = [
        Source(path="b.sh", text="vllm serve 'm\n"), Source(path="a.sh", text=BAD), Source(path="c.txt", text="x"),
        Source(path="d.yaml", text="on: push", named=False), Source(path="e.sh", text="echo", named=False),
        Source(path="f.sh", text="vllm serve 'm", named=False),
    ]  # fmt: skip
    judged = judge(sources, host=None, beside=lambda _: NO_FILES)
    assert [(finding.place.path, finding.id, finding.place.line) for finding in judged.findings] == [
        ("a.sh", "DV090", 1), ("b.sh", "CF022", 1), ("c.txt", "CF054", None), ("f.sh", "CF022", 1),
    ]  # fmt: skip
    assert (judged.read, judged.paths) == (1, ("b.sh", "a.sh", "c.txt", "f.sh"))
    assert all(finding.severity is Severity.ERROR for finding in judged.findings)


def test_what_only_the_run_knows_is_not_called_missing() -> None:
    """The same rule speaks when nothing is left open, so it is the open option that silences it."""
    from tests.fakes.planning import a_card, a_host

    host = a_host(accelerators=(a_card(0), a_card(1)))

    def said(text: str) -> set[str]:
        return {finding.id for finding in lint_all(read(text, path="x.sh", files=NO_FILES), host)}

    assert "DV023" in said("docker run --gpus all a/b --tensor-parallel-size 4\n")
    assert "DV023" not in said("docker run --gpus all $EXTRA a/b --tensor-parallel-size 4\n")
    assert "DV023" not in said("docker run --gpus $N a/b --tensor-parallel-size 4\n")
    assert "DV023" in said("docker run --gpus all --user $(id -u) a/b --tensor-parallel-size 4\n")
    assert "DV090" in said("docker run --gpus all $EXTRA a/b --api-key k\n")


def test_findings_have_a_line_even_when_a_rule_names_only_the_workload() -> None:
    found: tuple[Finding, ...] = lint_all(read(f"\n{BAD}\n", path="x.sh", files=NO_FILES), None)
    assert [(finding.place.line, finding.place.column) for finding in found] == [(2, 1)]
