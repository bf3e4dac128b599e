"""Where the weights and the compiled kernels lie: a claim of the release, or one that exists."""

from dataclasses import dataclass

from selfhost.core.errors import InputError
from selfhost.plan.cluster.case import Case
from selfhost.plan.cluster.names import cache_folder, model_folder, revision_of
from selfhost.plan.command_line import in_file
from selfhost.shapes.host import Known
from selfhost.shapes.model import Origin

_CLAIM = "kubernetes: {existing_claim: CLAIM, sub_path: FOLDER}"
_SECRET = "kubectl create secret generic hf-token --from-file=HF_TOKEN=$HOME/.cache/huggingface/token"  # noqa: S105


@dataclass(frozen=True, slots=True, kw_only=True)
class Storage:
    claim: str
    sub_path: str
    cache_sub_path: str
    cache_arch: str
    replicas: int
    reasons: dict[str, str]


def storage_of(case: Case) -> Storage:
    """Raises InputError for weights that no cluster can see."""
    ask = case.ask
    _refuse_folder(case)
    _refuse_gated(case)
    replicas = ask.replicas if ask.replicas is not None else 1
    sub_path = ask.sub_path or ("" if ask.existing_claim else model_folder(case.model.id, revision_of(case.model)))
    why = "an existing claim, as asked for" if ask.existing_claim else (
        "one volume for weights and what is compiled, which stays when the release goes"
    )  # fmt: skip
    return Storage(
        claim=ask.existing_claim,
        sub_path=sub_path,
        cache_sub_path=cache_folder(case.reference, _arch(case)),
        cache_arch=_arch(case),
        replicas=replicas,
        reasons={
            "weights": why,
            "weights.accessModes": "several pods on several nodes mount it: the storage class has to offer that"
            if replicas > 1
            else "one node at a time mounts it",
            "cache": "for this image and this kind of card only",
        },
    )


def _arch(case: Case) -> str:
    if not case.devices.cards:
        return case.host.cpu.architecture
    arch = case.devices.cards[0].arch
    return arch.value if isinstance(arch, Known) else case.build.backend


def _refuse_folder(case: Case) -> None:
    if case.model.origin is Origin.HUB or case.ask.existing_claim:
        return
    file = in_file(case.service) or "selfhost.yaml"
    raise InputError(
        f"a cluster cannot see the folder {case.model.path or case.model.ref} of this machine",
        why="Its nodes mount volumes of their own, and the job that fills one asks the hub.",
        fix=(
            f"copy it into a volume of the cluster and name its claim, in {file}:\n{_CLAIM}",
            "or name a model of the hub:\nselfhost models",
        ),
        id="PL090",
    )


def _refuse_gated(case: Case) -> None:
    if not case.model.gated or case.ask.hub_token_secret or case.ask.existing_claim:
        return
    raise InputError(
        f"{case.model.id} is gated or private, and no Secret with a token of the hub was named",
        why="The job that fetches the weights would be refused; no token of this machine is sent to a cluster.",
        fix=(
            f"accept the licence on the model's page where it asks for that, then make the Secret:\n{_SECRET}",
            "and name it in selfhost.yaml:\nkubernetes: {hub_token_secret: hf-token}",
        ),
        id="PL091",
    )
