"""Which container image an engine is served from: rows of images.toml. Pure."""

from functools import cache

from selfhost.core.table import read_table
from selfhost.engines.rows import frozen
from selfhost.shapes.plan import EngineBuild, Image


@cache
def rows() -> tuple[Image, ...]:
    """Every image."""
    return tuple(Image(**frozen(row)) for row in read_table("selfhost.engines", "images.toml")["image"])


def image_of(build: EngineBuild, *, arch: str = "") -> Image | None:
    """The image of this build for a card of `arch`; None where none is published for it.

    Of a version that no row has the image is known by name only: its tag is looked up when it is pulled.
    """
    alike = [image for image in rows() if (image.engine, image.backend) == (build.engine, build.backend)]
    found = [
        image
        for image in alike
        if (image.version, image.line) == (build.version, build.line) and (not image.archs or arch in image.archs)
    ]
    if found:
        return found[0]
    newest = next((image for image in alike if not image.line and (not image.archs or arch in image.archs)), None)
    if newest is None or build.line:
        return None
    return Image(
        engine=build.engine,
        version=build.version,
        backend=build.backend,
        name=newest.name,
        tag_pattern=newest.tag_pattern.replace(newest.version, build.version),
        newest_read=newest.newest_read,
        command=newest.command,
        user=newest.user,
        toolkit=newest.toolkit,
        driver_floor=newest.driver_floor,
        archs=newest.archs,
        platforms=newest.platforms,
        source=f"{newest.source}; version {build.version} is in no row",
    )
