"""The chart with the values of one plan: what `helm install` takes, without selfhost."""

from selfhost.plan.cluster.values import values_of
from selfhost.render.cluster_commands import helm_command
from selfhost.render.cluster_words import facts, head, reasons_of
from selfhost.render.manifests.chart import NAME, files
from selfhost.render.templates import environment
from selfhost.render.yaml_tree import dump
from selfhost.shapes.bundle import Bundle
from selfhost.shapes.cluster import ClusterPlan
from selfhost.shapes.place import Place
from selfhost.shapes.plan import Plan

FILE = "values.yaml"
OVERRIDE = "overrides/values.yaml"
README = "README.txt"


def render(plan: Plan, cluster: ClusterPlan, place: Place, *, bare: bool = False) -> Bundle:
    """The values first; the chart's files are copied as they are."""
    values = values_of(plan, image_digest=place.image_digest)
    reasons = {} if bare else reasons_of(plan, cluster)
    text = dump(values, lambda path: reasons.get(".".join(path), ""))
    readme = environment().get_template("helm/README.txt.j2").render(facts(plan, cluster, values, place))
    return Bundle(
        files={
            FILE: head(plan, helm_command(cluster)) + text,
            README: readme,
            **{f"{NAME}/{path}": text for path, text in files().items()},
        },
        executable=frozenset(),
    )
