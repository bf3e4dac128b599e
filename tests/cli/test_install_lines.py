import re
import tomllib
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
PAGES = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", ROOT / "CHANGELOG.md", *sorted((ROOT / "docs").rglob("*.md"))]
INSTALL = re.compile(r"(?:pip|pipx|uv|uvx|uv tool|uv pip)\s+(?:install|add|run)\s+(.+)")


def installed(text: str) -> list[str]:
    """What install lines name: distributions and files, without options."""
    lines = (match[1].split("`")[0].split("#")[0] for match in INSTALL.finditer(text))
    return [word.strip("'\"") for line in lines for word in line.split() if not word.startswith("-")]


def wrong(text: str, project: str) -> list[str]:
    """Names that a reader would install as ours and that are somebody else's."""
    ours = (project, project.replace("-", "_"))
    return [
        word for word in installed(text) if "selfhost" in word.lower() and not word.rpartition("/")[2].startswith(ours)
    ]


def project_name() -> str:
    return tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["name"]


def test_the_distribution_has_the_name_that_is_ours_on_pypi():
    assert project_name() == "selfhost-kit"


def test_no_install_line_of_the_docs_names_somebody_elses_project():
    assert {str(page): wrong(page.read_text(), project_name()) for page in PAGES} == {str(page): [] for page in PAGES}
    assert any(installed(page.read_text()) for page in PAGES)


def test_a_line_that_installs_the_other_project_would_be_found():
    assert wrong("```\npip install selfhost\n```", "selfhost-kit") == ["selfhost"]
    assert wrong("`pipx install selfhost`", "selfhost-kit") == ["selfhost"]
    assert wrong("pip install -U selfhost==1.0", "selfhost-kit") == ["selfhost==1.0"]
    assert wrong("~/x/bin/pip install dist/selfhost_kit-*.whl; pip install selfhost-kit", "selfhost-kit") == []
