import pytest

from tests.deploy.world import World


@pytest.fixture(scope="session")
def fake_wheels(tmp_path_factory):
    from tests.fakes.wheels import build_wheels

    return build_wheels(tmp_path_factory.mktemp("wheels"))


@pytest.fixture
def make_world(tmp_path, fake_wheels):
    made: list[World] = []

    def make(**extra: str) -> World:
        world = World(base=tmp_path / f"home{len(made)}", wheels=fake_wheels, extra_env=extra)
        world.base.mkdir()
        made.append(world)
        return world

    yield make
    for world in made:
        if world.processes():
            world.end()
