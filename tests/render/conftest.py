"""`--regenerate` writes the golden files anew instead of comparing them."""

import pytest


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--regenerate", action="store_true", help="write tests/golden anew")


@pytest.fixture
def regenerate(request: pytest.FixtureRequest) -> bool:
    return bool(request.config.getoption("--regenerate", default=False))


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """While they are written anew, what compares them would look at old and new ones at once."""
    if config.getoption("--regenerate", default=False):
        items[:] = [item for item in items if "regenerate" in getattr(item, "fixturenames", ())]
