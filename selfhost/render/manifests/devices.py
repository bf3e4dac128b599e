"""Devices by dynamic resource allocation. As the chart's _claim.tpl."""

from selfhost.render.manifests.around import Object, Release, hash_of


def claim_template(release: Release) -> Object:
    return {
        "apiVersion": release.values["accelerator"]["dra"]["apiVersion"],
        "kind": "ResourceClaimTemplate",
        "metadata": release.metadata("engine", template_name(release)),
        "spec": _spec(release),
    }


def template_name(release: Release) -> str:
    return f"{release.full}-{hash_of(_spec(release))}"


def _spec(release: Release) -> Object:
    cards = release.values["accelerator"]
    dra = cards["dra"]
    exactly: Object = {
        "deviceClassName": dra["deviceClassName"],
        "allocationMode": "ExactCount",
        "count": int(cards["count"]),
    }
    if dra["selectors"]:
        exactly["selectors"] = [{"cel": {"expression": text}} for text in dra["selectors"]]
    flat = dra["apiVersion"].endswith("/v1beta1")
    request = {"name": "gpu", **(exactly if flat else {"exactly": exactly})}
    devices = {"requests": [request], **({"constraints": dra["constraints"]} if dra["constraints"] else {})}
    return {"spec": {"devices": devices}}
