"""Kubernetes around this process: a pod, and the nodes that kind, k3d and minikube make out of containers."""

import re

from selfhost.hosts.glance import exists, glance, names
from selfhost.hosts.nesting_marks import Marks, either, file, variable


def pod(marks: Marks) -> str:
    proof = _pod(marks)
    service = quality(marks) if proof else ""
    return f"{proof}, {service}" if service else proof


def quality(marks: Marks) -> str:
    """QoS class by the control group's path, which a private namespace hides. Only the lower two write theirs."""
    own = marks.cgroup
    if "kubepods" not in own:
        return ""
    for name in ("besteffort", "burstable"):
        if re.search(rf"kubepods[-/.\w]*{name}", own):
            return f"QoS {name}"
    return "QoS guaranteed" if re.search(r"kubepods(?:\.slice)?/(?:kubepods-)?pod", own) else ""


def _pod(marks: Marks) -> str:
    hosts = marks.identity_mount(r"/pods/[0-9a-f-]{36}/etc-hosts$")
    account = "/var/run/secrets/kubernetes.io/serviceaccount"
    if hosts:
        return f"/etc/hosts comes from {hosts}"
    if names(marks.system, account):
        return f"{account} exists"
    if "kubepods" in marks.cgroup:
        return "control group kubepods"
    # A child container inherits the variable, and a kind node has its own: only with a sign of a container beside it.
    said = variable("KUBERNETES_SERVICE_HOST")(marks)
    if said and not exists(marks.system, "/kind") and not exists(marks.system, "/.dockerenv"):
        return said
    return ""


def kind(marks: Marks) -> str:
    product = glance(marks.system, "/sys/class/dmi/id/product_name")
    if product == "kind":
        return "/sys/class/dmi/id/product_name is kind"  # its entry point mounts it into the node and into every pod
    # kind keeps its pods in a control group of its own (its kubelet's cgroupRoot).
    own = re.search(r"/kubelet(?:\.slice/kubelet-|/)kubepods", marks.cgroup)
    if own:
        return f"control group {own[0]}"
    return next((f"{path} exists" for path in ("/kind/version", "/kind") if exists(marks.system, path)), "")


def k3d(marks: Marks) -> str:
    """Its nodes are rancher/k3s containers, named after the cluster."""
    named = re.match(r"k3d-", glance(marks.system, "/etc/hostname") or marks.system.env.get("HOSTNAME", ""))
    return either(file("/bin/k3s"), variable("K3S_TOKEN"))(marks) if named else ""


def minikube(marks: Marks) -> str:
    """The folder is also left on machines that only used it, so the name must be there too."""
    name = glance(marks.system, "/etc/hostname") or marks.system.env.get("HOSTNAME", "")
    proof = file("/var/lib/minikube")(marks)
    return proof if proof and (not name or name.startswith("minikube")) else ""
