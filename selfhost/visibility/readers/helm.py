"""What `helm template` prints: objects, each with the name of its template above it."""

from selfhost.shapes.workload import Workload
from selfhost.visibility.files import Files
from selfhost.visibility.readers.kubernetes import read as read_objects


def read(text: str, *, path: str, files: Files) -> tuple[Workload, ...]:
    """Its objects, at their lines of this text. Raises InputError for a template that is not rendered."""
    return read_objects(text, path=path, files=files)
