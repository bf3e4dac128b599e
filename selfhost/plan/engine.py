"""Which engine, in which environment."""

from selfhost.engines.names import shown
from selfhost.plan.origin import by
from selfhost.shapes.plan import Decision, EngineBuild, Evidence
from selfhost.shapes.service import Service
from selfhost.shapes.units import format_bytes


def engine_decisions(*, build: EngineBuild, service: Service) -> tuple[Decision, ...]:
    """The engine and the environment that it is installed into."""
    backend = (
        "no accelerator is used, so its CPU build"
        if build.backend == "cpu"
        else "the build for this accelerator, never run on one by us"
    )
    return (
        Decision(
            field="engine",
            value=f"{shown(build.engine)} {build.version}",
            reason=f"{backend}; the only engine that this version of selfhost starts",
            source=build.source,
            evidence=Evidence.SEEN_ELSEWHERE if build.backend == "cpu" else Evidence.READ_IN_CODE,
            evidence_note="started and checked by selfhost's own tests"
            if build.backend == "cpu"
            else "never run by us",
            by=by(service, "engine", service.engine),
        ),
        Decision(
            field="environment",
            value=f"{build.distribution}=={build.version}",
            reason=f"a managed environment of its own, {format_bytes(build.installed_bytes)}, shared by deployments",
            source=build.source,
            evidence=Evidence.SEEN_ELSEWHERE if build.constraints else Evidence.ASSUMED,
            evidence_note="size as measured" if build.constraints else "size estimated",
        ),
    )
