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
    try:
        return str(request.getfixturevalue("engine_python"))
    except pytest.FixtureLookupError:
        message = "no Python with vLLM: set SELFHOST_TEST_ENGINE_PYTHON"
        if os.environ.get("CI"):
            pytest.fail(message)
        pytest.skip(message)
