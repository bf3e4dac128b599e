"""docs/containers.md names every refusal of containers by its id, and no id that the code does not have."""

import re
from pathlib import Path

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "containers.md").read_text(encoding="utf-8")
ID = re.compile(r"\bRT\d{3}\b")
_OF_PROCESSES = {"RT050", "RT051", "RT090"}
"""Of the keeper and its records, and of Ansible: not of a container."""


def ids_in(*files: Path) -> set[str]:
    return {found for file in files for found in re.findall(r'"(RT\d{3})"', file.read_text(encoding="utf-8"))}


def test_every_id_of_the_page_is_one_of_the_code() -> None:
    assert set(ID.findall(PAGE)) - ids_in(*(ROOT / "selfhost").rglob("*.py")) == set()


def test_every_refusal_of_a_container_runtime_is_on_the_page() -> None:
    runtimes = (path for path in (ROOT / "selfhost" / "runtimes").glob("*.py") if path.name != "kubernetes.py")
    code = ids_in(*runtimes, *(
        ROOT / "selfhost" / "deploy" / name for name in ("purge.py", "postmortem.py", "announce.py", "fetch.py")
    ))  # fmt: skip
    assert len(code) > 25
    assert code - _OF_PROCESSES - set(ID.findall(PAGE)) == set()


def test_a_row_says_what_is_seen_what_happened_and_what_to_do() -> None:
    rows = [line for line in PAGE.splitlines() if re.search(r"\| RT\d{3}[^|]* \|$", line)]
    assert len(rows) > 35
    for row in rows:
        cells = [cell.strip() for cell in row.strip("|").split("|")]
        assert len(cells) == 4, row
        assert all(cells), row
