"""A shell or batch script → everything that it starts: containers, batch steps, plain engines."""

from dataclasses import replace

from selfhost.core.errors import InputError
from selfhost.shapes.finding import Place
from selfhost.shapes.workload import Workload
from selfhost.visibility.files import Files
from selfhost.visibility.readers import batch, process, run


def read(text: str, *, path: str, files: Files) -> tuple[Workload, ...]:
    """In the order of the script. Raises InputError when it starts nothing that we know."""
    job = batch.job_of(text)
    found: list[Workload] = []
    for call in process.script_calls(text, path=path):
        workload = batch.from_call(call, path=path, files=files, job=job)
        if workload is None:
            workload = run.from_call(call, path=path, files=files)
            if workload is None and process.is_engine(call):
                workload = process.workload(call, name=process.name_of(text, path=path), path=path)
            if workload is not None and job:
                workload = replace(workload, job=job)
        if workload is not None:
            found.append(workload)
    if not found:
        raise InputError(
            f"{path} starts no engine and no container",
            why="No `docker run`, `podman run`, `srun`, `apptainer exec` or engine was found in it.",
            fix=("name the script that starts the engine",),
            id="CF021",
            place=Place(path=path),
        )
    return tuple(found)
