"""The chart as real helm renders it, and what of its objects Kubernetes never lets change."""

import copy
import json
import os
from functools import cache
from pathlib import Path

import pytest
import yaml

from tests.e2e import helm_tool

CHART = Path(__file__).parents[2] / "templates" / "helm" / "selfhost-model"
RELEASE, NAMESPACE = "qwen3-4b", "team"
LIMITED = {
    "Deployment": ("selector",),
    "Job": ("selector", "template", "completions", "completionMode", "podFailurePolicy"),
    "ResourceClaimTemplate": None,
    "PersistentVolumeClaim": None,
}
"""Fields of `spec` that are immutable (Kubernetes API validation); None: all of it."""


_IN_CI = bool(os.environ.get("CI"))
"""Read at import: a fixture clears it for every test."""


def helm(*words, stdin=None):
    """One call of the real helm. At the desk a test is left out where helm cannot be had; in CI it fails."""
    try:
        helm_tool.tool("helm")
    except OSError as error:
        if _IN_CI:
            raise
        pytest.skip(f"helm cannot be had: {error}")
    return helm_tool.helm(*words, stdin=stdin)


def template(values=None, *, release=RELEASE, chart=CHART):
    """What `helm template` does with these values (as a second values file)."""
    words = () if values is None else ("--values", "-")
    return helm("template", release, chart, "--namespace", NAMESPACE, *words, stdin=as_yaml(values))


def as_yaml(values):
    """JSON is YAML, and quotes `on` and `off`."""
    return None if values is None else json.dumps(values)


def rendered(values=None, **more):
    """The objects of `helm template`."""
    text = _rendered(as_yaml(values), **more)
    return [one for one in yaml.load_all(text, Loader=getattr(yaml, "CSafeLoader", yaml.SafeLoader)) if one]


@cache
def _rendered(values, **more):
    done = template(None if values is None else json.loads(values), **more)
    assert done.returncode == 0, done.stderr
    return done.stdout


def refused(values):
    """What helm says to values that it does not take."""
    done = template(values)
    assert done.returncode != 0, "it was rendered"
    return done.stderr


def one(objects, kind, suffix=""):
    """The only object of a kind whose name ends so."""
    found = [each for each in objects if each["kind"] == kind and each["metadata"]["name"].endswith(suffix)]
    assert len(found) == 1, [each["metadata"]["name"] for each in found]
    return found[0]


def pods(objects):
    """Every pod spec, with the object that holds it."""
    for each in objects:
        if each["kind"] == "Pod":
            yield each, each["spec"]
        elif "template" in each.get("spec", {}) and each["kind"] in ("Deployment", "Job"):
            yield each, each["spec"]["template"]["spec"]


def engine(objects):
    """The engine's container."""
    return one(objects, "Deployment")["spec"]["template"]["spec"]["containers"][0]


def env_of(container):
    """Names with values; a reference is its Secret and key."""
    found = {}
    for each in container.get("env", []):
        assert each["name"] not in found, f"{each['name']} twice"
        ref = each.get("valueFrom", {}).get("secretKeyRef")
        found[each["name"]] = each.get("value") if ref is None else (ref["name"], ref["key"])
    return found


def immutable_fields(objects):
    """By kind and name, what an update of that object cannot change. A claim's size can grow and is left out."""
    found = {}
    for each in objects:
        key = (each["kind"], each["metadata"]["name"])
        spec = copy.deepcopy(each.get("spec", {}))
        if each["kind"] == "PersistentVolumeClaim":
            del spec["resources"]
        names = LIMITED.get(each["kind"], ())
        found[key] = spec if names is None else {name: spec[name] for name in names if name in spec}
    return found


def merged(*layers):
    """Maps merged, the later one wins."""
    whole = {}
    for layer in layers:
        for key, value in layer.items():
            both = isinstance(value, dict) and isinstance(whole.get(key), dict)
            whole[key] = merged(whole[key], value) if both else copy.deepcopy(value)
    return whole
