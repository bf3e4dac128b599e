"""What a container is given beside its devices: the model, the image, a user, time, memory, and no secret."""

import json
from dataclasses import asdict, fields, replace
from typing import Any

import pytest

from selfhost.core.errors import InputError
from selfhost.engines.builds import choose
from selfhost.plan.container.image import reference_of
from selfhost.plan.container.model_mount import model_mount
from selfhost.plan.decide import decide
from selfhost.plan.describe import describe
from selfhost.plan.digest import digest_of
from selfhost.plan.engine import only_in_a_container
from selfhost.plan.to_json import from_json, to_json
from selfhost.plan.workload import workload_of
from selfhost.shapes.host import Host, Known
from selfhost.shapes.place import Place
from selfhost.shapes.plan import Image, Plan
from selfhost.shapes.surroundings import Surroundings
from selfhost.shapes.workload import Workload
from tests.fakes.planning import a_card, a_host, a_model, a_service, smollm2
from tests.plan.container_hosts import PLACE, plan_on, recorded

REVISION = "0123456789abcdef0123456789abcdef01234567"


def made(runtime: str = "docker", *, machine: Host | None = None, model: Any = None, **wish: Any) -> Plan:
    return decide(
        host=machine or a_host(), model=model or smollm2(), service=a_service(runtime=runtime, **wish), port=8001
    )


def work(plan: Plan, **place: Any) -> Workload:
    return workload_of(plan, replace(PLACE, **place))


@pytest.mark.parametrize(
    ("path", "source", "inside"),
    [
        ("/srv/models/qwen", "/srv/models/qwen", "/model"),
        (
            f"/home/ana/.cache/huggingface/hub/models--Qwen--Qwen3-4B/snapshots/{REVISION}",
            "/home/ana/.cache/huggingface/hub/models--Qwen--Qwen3-4B",
            f"/model/snapshots/{REVISION}",
        ),
        ("/data/snapshots/night", "/data/snapshots/night", "/model"),
        ("/data/models--a--b/merged/night", "/data/models--a--b/merged/night", "/model"),
        ("", "/srv/models/Qwen--Qwen3-4B", "/model"),
    ],
)
def test_only_the_models_own_folder_is_mounted(path: str, source: str, inside: str) -> None:
    mount = model_mount(a_model(path=path))
    assert (mount.source, mount.target, mount.path) == (source, "/model", inside)
    made_mounts = work(made(model=a_model(path=path))).mounts
    assert [(one.source, one.target, one.read_only) for one in made_mounts if one.kind == "bind"] == [
        (source, "/model", True)
    ]
    assert work(made(model=a_model(path=path))).argv[0] == inside


def test_a_model_that_is_not_here_yet_is_said_to_be_missing_with_the_line_that_brings_it() -> None:
    reason = model_mount(a_model(path="")).reason
    line = f"hf download Qwen/Qwen3-4B --revision {REVISION} --local-dir /srv/models/Qwen--Qwen3-4B"
    assert line in reason


def test_the_server_listens_inside_and_is_published_on_loopback() -> None:
    workload = work(made())
    assert workload.argv[:5] == ("/model", "--host", "0.0.0.0", "--port", "8000")
    assert workload.ports == ("127.0.0.1:8001:8000",)
    assert workload.network == "selfhost-it"
    assert workload.name == "selfhost-it"


def test_sglang_is_started_by_its_images_command_and_has_no_key() -> None:
    host = a_host(accelerators=(a_card(),))
    workload = work(made(machine=host, model=a_model(), engine="sglang"), env_file="")
    words = " ".join(workload.argv)
    assert words.startswith("sglang serve --model-path /model --host 0.0.0.0 --port 8000 ")
    assert workload.env_files == ()
    assert "API_KEY" not in " ".join(workload.env)


def test_a_process_is_started_as_before() -> None:
    plan = made("process")
    assert plan.container is None
    assert work(plan).argv[:5] == ("/v/bin/python", "-m", "vllm.entrypoints.openai.api_server", "--host", "127.0.0.1")
    assert "--model" in plan.argv


def test_what_a_container_is_held_to() -> None:
    workload = work(made())
    assert workload.init
    assert workload.read_only
    assert workload.shm_bytes == 1024**3
    assert [(one.target, one.kind) for one in workload.mounts] == [
        ("/model", "bind"),
        ("/var/tmp", "volume"),
        ("/tmp", "tmpfs"),
    ]
    assert workload.mounts[1].source == "selfhost-cache-vllm-openai-cpu-v0.32.0-x86_64-x86_64"
    assert (workload.env["HOME"], workload.env["USER"]) == ("/var/tmp", "selfhost")
    assert workload.env_files == ("/s/key.env",)
    assert workload.env["HF_HUB_OFFLINE"] == workload.env["TRANSFORMERS_OFFLINE"] == "1"


def test_limits_are_raised_only_for_cards_and_only_where_the_engine_may() -> None:
    stack = ("stack", 67108864, 67108864)
    for plan, expected in (
        (made(), []),
        (plan_on(recorded("rtx4090"), "docker"), [("memlock", -1, -1), stack]),
        (plan_on(recorded("rtx4090"), "podman"), [stack]),
    ):
        assert [(one.name, one.soft, one.hard) for one in work(plan).ulimits] == expected


def test_the_root_file_system_of_a_container_with_an_nvidia_card_is_written_by_the_toolkit() -> None:
    workload = work(made(machine=a_host(accelerators=(a_card(),)), model=a_model()))
    assert not workload.read_only
    assert [one.target for one in workload.mounts] == ["/model", "/var/tmp"]


def test_the_health_check_asks_the_server_without_a_proxy_and_without_curl() -> None:
    health = work(made()).health
    assert health is not None
    assert health.test[:2] == ("python3", "-c")
    compile(health.test[2], "check", "exec")
    assert "http://127.0.0.1:8000/health" in health.test[2]
    assert "ProxyHandler({})" in health.test[2]
    # 269 MB by 100 MB/s are 3 s, and 120 s to start on a processor: 123 s, in whole minutes
    assert health.start_period_s == 180


def test_the_stop_grace_lies_above_the_engines_own_time_out() -> None:
    assert work(made()).stop_grace_s == 30
    assert work(made(engine_args=("--shutdown-timeout", "90"))).stop_grace_s == 120
    sglang = made(machine=a_host(accelerators=(a_card(),)), model=a_model(), engine="sglang")
    assert work(sglang).stop_grace_s == 60


def test_it_starts_again_by_itself_only_after_a_checked_start_and_never_in_shared_memory() -> None:
    plan = made()
    assert (work(plan).restart, work(plan, checked=True).restart) == ("on-failure:3", "unless-stopped")
    spark = plan_on(recorded("gb10"), "docker")
    assert (work(spark).restart, work(spark, checked=True).restart) == ("no", "no")


@pytest.mark.parametrize(
    ("uid", "groups", "user"),
    [(1000, (1000, 44), "1000:1000"), (1001, (100,), "1001:100"), (0, (0,), "2000:0"), (None, (), "2000:0")],
)
def test_the_server_runs_as_the_user_or_as_the_images_own(uid: int | None, groups: tuple[int, ...], user: str) -> None:
    around = Surroundings(groups=groups) if uid is None else Surroundings(uid=Known(uid, "id"), groups=groups)
    host = a_host(accelerators=(a_card(),), surroundings=around)
    assert work(made(machine=host, model=a_model())).user == user


def test_an_image_by_digest_once_it_was_resolved() -> None:
    digest = "sha256:" + "ab" * 32
    assert work(made(), image_digest=digest).image == f"vllm/vllm-openai-cpu:v0.32.0-x86_64@{digest}"


@pytest.mark.parametrize(
    ("architecture", "tag"), [("x86_64", "v0.32.0-x86_64"), ("aarch64", "v0.32.0-arm64"), ("riscv64", "v0.28.0-x86_64")]
)
def test_the_tag_is_the_one_that_the_projects_rule_gives(architecture: str, tag: str) -> None:
    image = Image(
        engine="vllm", version="0.32.0", backend="cpu", name="vllm/vllm-openai-cpu",
        tag_pattern="v0.32.0-x86_64, v0.32.0-arm64", newest_read="v0.28.0-x86_64", source="docs",
    )  # fmt: skip
    build = choose(backend="cpu", asked=None)
    found = reference_of(image, build=build, service=a_service(), architecture=architecture)
    assert found.text == f"vllm/vllm-openai-cpu:{tag}"
    assert found.decision.evidence.value == "assumed"


def test_a_tag_with_a_day_that_nobody_read_is_not_invented() -> None:
    plan = plan_on(recorded("amd-mi300x"), "docker", engine="sglang")
    assert plan.container is not None
    assert plan.container.image == "lmsysorg/sglang-rocm:v0.5.20-rocm10-mi30x-20260920"
    decision = plan.decision("image")
    assert decision is not None
    assert "it holds SGLang 0.5.20" in decision.reason
    assert "0.5.23" in decision.reason


def test_the_users_own_image_counts_before_all() -> None:
    plan = made(image="registry.example/llm/vllm:site")
    assert plan.container is not None
    assert plan.container.image == "registry.example/llm/vllm:site"
    decision = plan.decision("image")
    assert decision is not None
    assert decision.by == "--image registry.example/llm/vllm:site"


def test_a_runtime_that_is_none_and_a_process_where_none_runs_are_refused() -> None:
    with pytest.raises(InputError) as unknown:
        made("nomad")
    assert unknown.value.id == "PL077"
    with pytest.raises(InputError) as process:
        plan_on(recorded("rx7900xtx"), "process")
    assert process.value.id == "PL075"
    assert "--runtime docker" in process.value.fix[0]


def test_without_any_engine_a_card_for_containers_stays_for_containers() -> None:
    plan = plan_on(recorded("rx7900xtx"), None)
    assert (plan.runtime, plan.container) == ("container", None)
    assert "selfhost prepare --only docker" in only_in_a_container(plan).fix[0]


def test_a_plan_shows_how_its_devices_come_in_and_comes_back_from_json() -> None:
    plan = plan_on(recorded("amd-mi210"), None)
    assert "devices enter by" in describe(plan)
    assert "/dev/kfd /dev/dri/renderD128" in describe(plan)
    assert "vllm/vllm-openai-rocm:v0.33.0" in describe(plan)
    raw = json.loads(json.dumps(to_json(plan)))
    assert raw["runtime"] == "docker"
    assert raw["image"] == "vllm/vllm-openai-rocm:v0.33.0"
    assert raw["argv"][:2] == ["/model", "--host"]
    assert from_json(raw) == plan


def test_the_digest_changes_with_the_container_and_not_with_its_reasons() -> None:
    plan = made()
    assert plan.container is not None
    inside = plan.container
    base = digest_of(plan)
    assert digest_of(replace(plan, container=replace(inside, reasons={"x": "y"}))) == base
    for change in ({"user": "7:7"}, {"shm_bytes": 1}, {"image": "other:1"}, {"model_source": "/elsewhere"}):
        assert digest_of(replace(plan, container=replace(inside, **change))) != base


def test_every_reason_belongs_to_a_line_that_a_workload_can_have() -> None:
    names = {field.name for field in fields(Workload)} | {"argv"}
    for name in ("rtx4090", "amd-mi210", "arc-b580", "jetson-thor", "wsl2-rtx"):
        plan = plan_on(recorded(name), "docker")
        assert plan.container is not None
        for key, reason in plan.container.reasons.items():
            assert key.partition(".")[0] in names, key
            assert "\n" not in reason
        for number in range(len(work(plan).mounts)):
            assert f"mounts.{number}" in plan.container.reasons


def test_no_field_of_a_workload_holds_a_secret(tmp_path: Any) -> None:
    key = tmp_path / "key"
    key.write_text("sk-selfhost-canary-0123456789\n")
    place = Place(folder=str(tmp_path), key_file=str(key), env_file=str(tmp_path / "key.env"), python="/p")
    for plan in (made(), made("process"), plan_on(recorded("rtx4090"), "podman")):
        text = json.dumps(asdict(workload_of(plan, place)), default=str)
        assert "canary" not in text
        assert "VLLM_API_KEY" not in text
        assert "HF_TOKEN" not in text
        assert "HF_HOME" not in text
