"""As whom the pod runs, and why a namespace that enforces `restricted` may refuse it."""

from dataclasses import dataclass

from selfhost.plan.cluster.case import Case
from selfhost.shapes.host import Vendor

_NODES = "belongs to a group whose number only the node knows"
_WHY = {
    "rocm": f"/dev/kfd {_NODES}",
    "xpu": f"/dev/dri/renderD* {_NODES}",
}
"""Why vLLM's images without a user of their own are run as root."""
STANDARD = "https://kubernetes.io/docs/concepts/security/pod-security-standards/"


@dataclass(frozen=True, slots=True, kw_only=True)
class Security:
    user: str
    unconfined: bool
    reason: str
    exceptions: tuple[str, ...]


def security_of(case: Case) -> Security:
    user = case.image.user if case.image is not None else ""
    amd = bool(case.devices.cards) and case.devices.cards[0].vendor is Vendor.AMD
    unconfined = amd and case.ranks > 1
    exceptions = []
    if not user:
        exceptions.append(f"runAsNonRoot: false, because {_why_root(case)}")
    if unconfined:
        why = "because ranks on AMD cards read each other's memory, which the default profile refuses"
        exceptions.append(f"seccompProfile: Unconfined and capability SYS_PTRACE, {why}")
    reason = "the image's own user without root" if user else exceptions[0]
    return Security(user=user, unconfined=unconfined, reason=reason, exceptions=tuple(exceptions))


def _why_root(case: Case) -> str:
    why = _WHY.get(case.build.backend, "") if case.build.engine == "vllm" else ""
    named = f"{case.reference} names no user without root"
    return f"{named}, and {why}" if why else f"{named} and was not tried as another"
