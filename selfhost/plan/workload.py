"""A plan as the normal form of a launched engine, which renderers write and readers give back."""

from selfhost.shapes.plan import Plan
from selfhost.shapes.workload import Workload


def workload_of(plan: Plan, *, python: str) -> Workload:
    return Workload(
        name=plan.name,
        argv=(python, "-m", plan.build.module, *plan.argv),
        env=dict(plan.env),
    )
