"""`down` in a cluster: the volume with the weights stays, unless its removal was asked for."""

from dataclasses import dataclass

from selfhost.deploy.runtime import cluster_runtime
from selfhost.deploy.state import State
from selfhost.runtimes.base import Runtime


@dataclass(frozen=True, slots=True, kw_only=True)
class Claims:
    """What became of the volumes, in words."""

    gone: tuple[str, ...] = ()
    kept: tuple[tuple[str, str], ...] = ()


def claims_after(state: State, runtime: Runtime, *, purge: bool) -> Claims:
    """Each volume that this deployment made: removed with `purge`, listed with its size without."""
    cluster = cluster_runtime(runtime)
    gone, kept = [], []
    for claim in cluster.volumes(state.name):
        why = cluster.remove_claim(state.name, claim) if purge else ""
        if purge and not why:
            gone.append(f"{claim}, {claim.size}")
        else:
            kept.append((f"weights, {claim.size}{f'; {why}' if why else ''}", str(claim)))
    return Claims(gone=tuple(gone), kept=tuple(kept))


def volumes_in_words(state: State, runtime: Runtime) -> str:
    """What `--purge` would remove, for the question before it; empty for nothing."""
    listed = [f"{claim.name} ({claim.size})" for claim in cluster_runtime(runtime).volumes(state.name)]
    return f"its volumes with weights ({', '.join(listed)})" if listed else ""
