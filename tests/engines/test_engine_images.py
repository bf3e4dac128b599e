"""Images are named as they were read, and never by a tag that nobody saw."""

import pytest

from selfhost.engines.builds import choose, rows
from selfhost.engines.images import image_of
from selfhost.engines.images import rows as images


def test_every_image_belongs_to_a_build_and_every_build_of_cards_has_one() -> None:
    builds = {(build.engine, build.version, build.backend, build.line) for build in rows()}
    pictured = {(image.engine, image.version, image.backend, image.line) for image in images()}
    assert pictured <= builds | {("vllm", "0.32.0", "cpu", "")}
    assert {build for build in builds if build[2] != "cpu"} <= pictured


def test_an_image_without_a_tag_says_how_tags_look_and_which_was_seen() -> None:
    for image in images():
        assert bool(image.tag) is not bool(image.tag_pattern)
        assert image.tag or image.newest_read
        assert ":" not in image.name
        assert image.source.startswith("https://")
        assert "latest" not in (image.tag, image.newest_read)


@pytest.mark.parametrize(
    ("backend", "asked", "driver", "arch", "reference", "command"),
    [
        ("cuda", "vllm", "", "sm_89", "vllm/vllm-openai", ()),
        ("cuda", "vllm", "575.57.08", "sm_89", "vllm/vllm-openai:v0.31.0-cu129", ()),
        ("cuda", "sglang", "", "sm_89", "lmsysorg/sglang", ("sglang", "serve")),
        ("cuda", "sglang", "575.57.08", "sm_89", "lmsysorg/sglang:v0.5.19-cu129", ("sglang", "serve")),
        ("rocm", "vllm", "", "gfx1100", "vllm/vllm-openai-rocm", ()),
        ("rocm", "sglang", "", "gfx942", "lmsysorg/sglang-rocm", ("sglang", "serve")),
        ("xpu", "vllm", "", "bmg", "vllm/vllm-openai-xpu", ()),
    ],
)
def test_each_card_has_its_image(
    backend: str, asked: str, driver: str, arch: str, reference: str, command: tuple[str, ...]
) -> None:
    image = image_of(choose(backend=backend, asked=asked, driver=driver), arch=arch)
    assert image is not None
    assert (image.reference, image.command) == (reference, command)


@pytest.mark.parametrize(("arch", "newest"), [("gfx942", "mi30x"), ("gfx950", "mi35x")])
def test_sglangs_images_for_amd_differ_by_card(arch: str, newest: str) -> None:
    image = image_of(choose(backend="rocm", asked="sglang"), arch=arch)
    assert image is not None
    assert newest in image.newest_read
    assert image_of(choose(backend="rocm", asked="sglang"), arch="gfx1100") is None


def test_an_image_of_a_version_that_no_row_has_is_known_by_name_only() -> None:
    image = image_of(choose(backend="cuda", asked="vllm@0.40.0"), arch="sm_90")
    assert image is not None
    assert (image.reference, image.version, image.tag_pattern) == ("vllm/vllm-openai", "0.40.0", "v0.40.0")
