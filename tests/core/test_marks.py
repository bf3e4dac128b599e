import importlib
import sys

import pytest

from selfhost.core.marks import collect

PART = """
from types import SimpleNamespace
from selfhost.core.marks import mark

{}
"""


@pytest.fixture
def package(tmp_path, monkeypatch):
    def make(name, **modules):
        folder = tmp_path / name
        folder.mkdir()
        (folder / "__init__.py").touch()
        for module, body in modules.items():
            (folder / f"{module}.py").write_text(PART.format(body))
        monkeypatch.syspath_prepend(str(tmp_path))
        importlib.invalidate_caches()
        return importlib.import_module(name)

    yield make
    for loaded in [name for name in sys.modules if name.startswith("marks_")]:
        del sys.modules[loaded]


def test_marked_functions_are_found_by_id_and_imported_ones_are_not_found_twice(package):
    made = package(
        "marks_good",
        one="@mark('check', SimpleNamespace(id='SM002'))\ndef later(): return 2\ndef unmarked(): return 0",
        two="from marks_good.one import later\n@mark('check', SimpleNamespace(id='SM001'))\ndef first(): return 1",
    )
    found = collect(made, "check")
    assert [(name, function()) for name, (_, function) in found.items()] == [("SM001", 1), ("SM002", 2)]
    assert collect(made, "rule") == {}


def test_an_id_given_twice_is_our_bug(package):
    body = "@mark('check', SimpleNamespace(id='SM001'))\ndef check(): return 1"
    with pytest.raises(ValueError, match="SM001"):
        collect(package("marks_twice", one=body, two=body), "check")
