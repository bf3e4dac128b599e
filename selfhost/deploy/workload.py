"""A workload as one number, to see whether a running container is still the one that the files describe."""

import hashlib
import json
from dataclasses import asdict, replace

from selfhost.shapes.workload import Workload


def digest_of_workload(workload: Workload) -> str:
    """SHA-256 of all that shapes the container; where it was read, and whether it restarts, do not."""
    plain = asdict(replace(workload, path="", at={}, restart=""))
    return hashlib.sha256(json.dumps(plain, sort_keys=True, default=str).encode()).hexdigest()
