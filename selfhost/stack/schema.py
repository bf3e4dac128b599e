"""selfhost.yaml, version 1, as it is published: every key, what it may hold, what it means. Imported only at use."""

from typing import Annotated, Final, Literal

from pydantic import AfterValidator, BaseModel, BeforeValidator, ConfigDict, Field, StringConstraints

from selfhost.stack import spellings

SCHEMA_URI: Final = "https://json-schema.org/draft/2020-12/schema"

Text = Annotated[str, StringConstraints(pattern=r"^\S(?:.*\S)?$")]
Raw = Annotated[str, AfterValidator(spellings.without_nul)]
Count = Annotated[int, Field(ge=1, le=65_536), BeforeValidator(spellings.count)]
Length = Annotated[int, Field(ge=1, le=100_000_000), BeforeValidator(spellings.count)]
ObjectName = Annotated[str, StringConstraints(pattern=r"^[a-z0-9]([a-z0-9.-]{0,251}[a-z0-9])?$")]
"""Of an object in a cluster (RFC 1123)."""
Share = Annotated[float, Field(gt=0, le=1)]
ServiceName = Annotated[str, AfterValidator(spellings.service_name)]


class Form(BaseModel):
    model_config = ConfigDict(
        extra="forbid", strict=True, frozen=True, use_attribute_docstrings=True, allow_inf_nan=False
    )


class Reasoning(Form):
    """Whether and how long the model thinks. Short form: `on`, `off`, `budget=N`, `effort=LEVEL`."""

    mode: Annotated[Literal["on", "off", "budget", "effort"], BeforeValidator(spellings.on_or_off)]
    """`budget` needs `budget_tokens`, `effort` needs `effort`."""
    budget_tokens: Annotated[int, Field(ge=0, le=100_000_000), BeforeValidator(spellings.count)] | None = Field(
        None, examples=[2048]
    )
    """Tokens of thinking before an answer, with mode `budget`; 0 cuts thinking off at once."""
    effort: Literal["low", "medium", "high"] | None = Field(None, examples=["low"])
    """The level, with mode `effort`."""


class Precision(Form):
    """Numbers that the model computes with. Short form: that of the weights, `precision: fp8`."""

    weights: Text | None = Field(None, examples=["fp8"])
    """`auto`, `bf16`, `fp16`, `fp32`, `fp8`, `int4`… as `--precision`."""
    kv: Text | None = Field(None, examples=["auto"])
    """`auto`, `bf16`, `fp8`… as `--kv-cache`."""


class Latency(Form):
    """The time may be longer than `s` seconds in at most a share `p` of the requests."""

    p: Annotated[float, Field(gt=0, lt=1, examples=[0.05])]
    """Share of the requests, above 0 and below 1."""
    s: Annotated[float, Field(gt=0, examples=[2.0])]
    """Seconds."""


class Envelope(Form):
    """The load that the service is meant for. Lengths in tokens."""

    isl: Length | None = Field(None, examples=[2000])
    """Input sequence length: tokens of one prompt."""
    osl: Length | None = Field(None, examples=[500])
    """Output sequence length: tokens of one answer. Together with `isl` the context, where none is asked for."""
    concurrency: Count | None = Field(None, examples=[8])
    """Requests at the same time; the service's own `concurrency`, where none is asked for."""
    cache: Literal["cold", "warm"] | None = Field(None, examples=["cold"])
    """State of the prefix cache."""
    ttft: Latency | None = Field(None, examples=[{"p": 0.05, "s": 2.0}])
    """Time to the first token."""
    tpot: Latency | None = Field(None, examples=[{"p": 0.05, "s": 0.05}])
    """Time of each further token."""
    price_per_hour: Annotated[float, Field(ge=0)] | None = Field(None, examples=[1.2])
    """What the machine costs, in any currency."""


class Toleration(Form):
    """Of a taint, as in a pod."""

    key: Text | None = Field(None, examples=["dedicated"])
    """Of the taint; without one, every taint."""
    operator: Literal["Exists", "Equal"] = Field("Exists", examples=["Exists"])
    """`Equal` compares `value`."""
    value: Text | None = Field(None, examples=["models"])
    """Of the taint, with `Equal`."""
    effect: Literal["NoSchedule", "PreferNoSchedule", "NoExecute"] | None = Field(None, examples=["NoSchedule"])
    """Of the taint; without one, every effect."""


class Kubernetes(Form):
    """What only a cluster asks, for the runtime `kubernetes` and for `selfhost render helm|kubernetes`."""

    namespace: ObjectName | None = Field(None, examples=["models"])
    """Where everything is made; without it that of the context."""
    context: Text | None = Field(None, examples=["team-dev"])
    """Of the kubeconfig; without it its current one. Its name differs between people: better `--kube-context`."""
    replicas: Annotated[int, Field(ge=1, le=100)] | None = Field(None, examples=[1])
    """Pods that serve the same. More than one needs storage that several nodes can mount."""
    storage_class: str | None = Field(None, examples=["standard"])
    """Of the volume with the weights; without it the cluster's default. An empty word binds one that is there."""
    existing_claim: ObjectName | None = Field(None, examples=["models"])
    """A PersistentVolumeClaim that holds the weights already; nothing is fetched then."""
    sub_path: Annotated[str, StringConstraints(pattern=r"^[^/\s][^\s]*$")] | None = Field(None, examples=["qwen3-4b"])
    """Folder with the weights inside the claim."""
    runtime_class: Text | None = Field(None, examples=["nvidia"])
    """`auto`, `none` or a name. k3s, RKE2 and k0s need `nvidia`, which `auto` sees where the cluster is looked at."""
    tolerations: list[Toleration] | None = Field(None, examples=[[{"key": "dedicated"}]])
    """Of taints beside those that vendors set on nodes with cards."""
    node_selector: dict[Text, str] | None = Field(None, examples=[{"pool": "gpu"}])
    """Labels that the node must have."""
    hub_token_secret: ObjectName | None = Field(None, examples=["hf-token"])
    """A Secret with `HF_TOKEN`, for gated models; only the job that fetches the weights sees it."""
    key_secret: ObjectName | None = Field(None, examples=["chat-key"])
    """A Secret with `api-key`, which clients send; without it NAME-api-key."""
    image_pull_secrets: Annotated[list[ObjectName], BeforeValidator(spellings.one_or_more)] | None = Field(
        None, examples=[["registry"]]
    )
    """Secrets by which nodes pull the image."""
    ca_config_map: ObjectName | None = Field(None, examples=["company-ca"])
    """A ConfigMap with `ca.crt`: a private certificate authority, for the hub."""
    host: Text | None = Field(None, examples=["chat.example"])
    """Name under which an Ingress publishes the service; needs `tls_secret`."""
    ingress_class: Text | None = Field(None, examples=["nginx"])
    """Of the Ingress; without it the cluster's default."""
    tls_secret: ObjectName | None = Field(None, examples=["chat-tls"])
    """A Secret of the kind kubernetes.io/tls for `host`."""


class Service(Form):
    """One endpoint: a model, on devices, behind a port. Everything is optional but the model."""

    model: Text | None = Field(None, examples=["qwen3-4b"])
    """An alias (`selfhost models`), a Hugging Face id, also with `@REVISION`, or a folder."""
    runtime: Literal["process", "docker", "podman", "quadlet", "kubernetes"] | None = Field(None, examples=["docker"])
    """What runs the engine."""
    engine: Text | None = Field(None, examples=["vllm"])
    """`vllm` or `sglang`, also with `@VERSION`."""
    image: Text | None = Field(None, examples=["registry.example/vllm-openai:v0.33.0"])
    """A container image instead of the engine's own, as `docker pull` takes it."""
    devices: Annotated[list[str], BeforeValidator(spellings.devices)] | None = Field(None, examples=[["GPU-6f1e2233"]])
    """`cpu`, `auto`, or uuids, PCI addresses or numbers of cards. Two services share a card only with `share`."""
    share: Share | None = Field(None, examples=[0.45])
    """Share of each card's memory that this service may take. Those on one card add up to 1 at most."""
    port: Annotated[int, Field(ge=1, le=65_535)] | None = Field(None, examples=[8001])
    """Port on 127.0.0.1; without it the first free one from 8000 on."""
    context: Annotated[int, Field(ge=16, le=100_000_000), BeforeValidator(spellings.count)] | None = Field(
        None, examples=["32k"]
    )
    """Tokens of one request, prompt and answer together. `32k` is 32,000, `32K` is 32,768."""
    concurrency: Count | None = Field(None, examples=[8])
    """Requests that run at the same time."""
    reasoning: Annotated[Reasoning, BeforeValidator(spellings.reasoning)] | None = Field(None, examples=["off"])
    """Whether and how long the model thinks."""
    precision: Annotated[Precision, BeforeValidator(spellings.precision)] | None = Field(None, examples=["fp8"])
    """Numbers that weights and KV cache are kept in."""
    trust_remote_code: bool | None = Field(None, examples=[True])
    """Let Python that the model's repository ships run here."""
    allow_pickle: bool | None = Field(None, examples=[True])
    """Load weights that are pickles: they can run code."""
    kv_skip_layers: Annotated[list[str], BeforeValidator(spellings.layers)] | None = Field(None, examples=[[0, 1]])
    """Layers whose KV cache stays as computed: numbers, or `sliding_window`."""
    engine_args: Annotated[list[Raw], BeforeValidator(spellings.engine_args)] | None = Field(
        None, examples=[["--max-num-batched-tokens", "4096"]]
    )
    """Flags passed on to the engine: a list of words, or a map of flags to values."""
    engine_env: dict[Annotated[str, AfterValidator(spellings.variable)], Raw] | None = Field(
        None, examples=[{"VLLM_LOGGING_LEVEL": "DEBUG"}]
    )
    """Variables passed on to the engine."""
    media_domains: Annotated[list[Text], BeforeValidator(spellings.one_or_more)] | None = Field(
        None, examples=[["images.example"]]
    )
    """Servers that a vision model may fetch images from; without it none is asked."""
    context_ceiling: Length | None = Field(None, examples=[4096])
    """Tokens that the system in front may add to a request."""
    envelope: Envelope | None = Field(None, examples=[{"isl": 2000, "osl": 500, "concurrency": 8}])
    """The load that the service is meant for."""
    kubernetes: Kubernetes | None = Field(None, examples=[{"namespace": "models"}])
    """What only a cluster asks."""


class SelfhostYaml(Form):
    """What runs on one host: its models, one service each."""

    version: Literal[1]
    """Of this form."""
    defaults: Service | None = Field(None, examples=[{"runtime": "docker"}])
    """Keys for every service that does not say them itself."""
    services: Annotated[dict[ServiceName, Service], Field(min_length=1, examples=[{"chat": {"model": "qwen3-4b"}}])]
    """By name: 1 to 63 of a-z 0-9 . _ -, letters or digits at both ends."""
