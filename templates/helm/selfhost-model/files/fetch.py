"""Fetch job: brings the weights onto the volume and marks them as complete; what is there already is kept."""

import errno
import json
import os
import shutil
import signal
import sys
from pathlib import Path

from huggingface_hub import HfApi, snapshot_download
from huggingface_hub.errors import GatedRepoError, RepositoryNotFoundError, RevisionNotFoundError
from huggingface_hub.utils import filter_repo_objects

USELESS = 78
"""No retry mends it; the job's podFailurePolicy knows this status."""
signal.signal(signal.SIGTERM, lambda *_: os._exit(143))  # downloads run in threads, which a plain exit waits for
folder = Path(sys.argv[1])
marker, records = folder / ".selfhost-complete", folder / ".cache/huggingface/download"
wanted = json.loads(os.environ["SELFHOST_WANTED"])
model, revision, include = wanted["model"], wanted["revision"], wanted["include"] or None
name = f"{model} at {revision}"


def give_up(words):
    print(words, file=sys.stderr, flush=True)
    sys.exit(USELESS)


def marked():
    """A line for each choice of files that is complete, with the commit they are of."""
    return [json.loads(line) for line in marker.read_text().splitlines()] if marker.exists() else []


def mark(lines):
    partial = marker.with_suffix(".partial")
    partial.write_text("".join(json.dumps(line, sort_keys=True) + "\n" for line in lines))
    partial.replace(marker)


def commit_of(path):
    """That of a file here: the library writes it down beside each one that it brought."""
    record = records / f"{path}.metadata"
    return record.read_text().partition("\n")[0] if record.is_file() else ""


def missing():
    """Files that are not there whole and of this commit: the library says nothing of a hub that fell silent."""
    found = []
    for path, size in sizes.items():
        place = folder / path
        whole = place.is_file() and size in (None, place.stat().st_size)
        if not (whole and commit_of(path) == info.sha):
            found.append(path)
    return found


try:
    for line in marked():
        if line.get("wanted") == wanted:
            print(f"{name} is there already, commit {line['commit']}", flush=True)
            sys.exit(0)
    info = HfApi().model_info(model, revision=revision, files_metadata=True)
    chosen = filter_repo_objects(info.siblings, allow_patterns=include, key=lambda one: one.rfilename)
    sizes = {one.rfilename: one.size for one in chosen}
    if not sizes:
        give_up(f"{name} has no file that fits {include}: see fetch.include")
    mark([line for line in marked() if line.get("commit") == info.sha])
    theirs = {one.rfilename for one in info.siblings}
    for record in [*records.rglob("*.metadata")]:
        path = str(record.relative_to(records)).removesuffix(".metadata")
        if path not in theirs:  # of another commit; an engine would load it beside the others
            (folder / path).unlink(missing_ok=True)
            record.unlink()
    needed = sum(sizes[path] or 0 for path in missing())
    free = shutil.disk_usage(folder).free
    print(
        f"{name}, commit {info.sha}: {len(sizes)} files, {needed / 1e9:.1f} GB to fetch, {free / 1e9:.1f} GB free",
        flush=True,
    )
    begun = [*records.rglob("*.incomplete"), *filter(Path.is_file, map(folder.joinpath, missing()))]
    if needed > free + sum(place.stat().st_size for place in begun):
        give_up(f"the volume has no room for {name}: raise weights.size, or remove revisions that nobody serves")
    snapshot_download(model, revision=info.sha, local_dir=folder, allow_patterns=include)
    left = missing()
    if not left:
        mark([*marked(), {"commit": info.sha, "wanted": wanted}])
except GatedRepoError:
    give_up(f"{name} is gated: accept its licence on the hub, and name a Secret with a token in fetch.existingSecret")
except RevisionNotFoundError:
    give_up(f"{model} has no revision {revision}: see model.revision")
except RepositoryNotFoundError:
    give_up(f"the hub shows no {model} to us: see model.id, or fetch.existingSecret for a private model")
except Exception as error:  # noqa: BLE001 - which one it is depends on the HTTP client of the library's version
    number = getattr(error, "errno", None)
    if number in (errno.EACCES, errno.EPERM, errno.EROFS):
        give_up(
            f"uid {os.getuid()} cannot write to the volume ({error}): see podSecurityContext.fsGroup, or the export"
        )
    if number in (errno.ENOSPC, errno.EDQUOT):
        give_up(f"the volume is full: raise weights.size, or remove revisions that nobody serves ({error})")
    sys.exit(f"{name} could not be fetched: {type(error).__name__}: {error}\nSee fetch.endpoint, fetch.env and ca")
if left:
    sys.exit(f"{len(left)} of {len(sizes)} files are not complete, such as {left[0]}; the next try goes on from here")
print(f"{name} is complete, commit {info.sha}", flush=True)
