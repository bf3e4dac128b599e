"""A Python that has vLLM, for its own argument parser."""

import os
from pathlib import Path

import pytest


@pytest.fixture(scope="session")
def parser_python(request: pytest.FixtureRequest) -> str:
    """Path of a Python with vLLM: SELFHOST_TEST_ENGINE_PYTHON, or the fixture `engine_python` where there is one."""
    named = os.environ.get("SELFHOST_TEST_ENGINE_PYTHON", "")
    if named and Path(named).exists():
        return named
    found = request.getfixturevalue("engine_python")
    if found:
        return str(found)
    message = "no Python with vLLM: `make up` installs one, or set SELFHOST_TEST_ENGINE_PYTHON"
    if os.environ.get("CI"):
        pytest.fail(message)
    pytest.skip(message)
