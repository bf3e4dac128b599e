"""Engine, build and image by maker, architecture and driver, before anything is fetched."""

from dataclasses import replace
from pathlib import Path

import pytest

from selfhost.core.errors import EnvironmentMissing, InputError
from selfhost.core.recorded import Recorded
from selfhost.hosts.detect import detect
from selfhost.plan.decide import decide
from selfhost.plan.devices import choose_devices
from selfhost.plan.engine import EngineChoice, choose_engine, only_in_a_container
from selfhost.shapes.host import Accelerator, Host, Known, Vendor
from selfhost.shapes.plan import Decision, Evidence
from tests.fakes.planning import a_card, a_host, a_model, a_service

SNAPSHOTS = Path(__file__).parent.parent / "snapshots"


def on(host: Host, **wishes: str) -> EngineChoice:
    service = a_service(**wishes)
    return choose_engine(host=host, devices=choose_devices(host=host, service=service), service=service)


def of(choice: EngineChoice, field: str) -> Decision:
    return next(decision for decision in choice.decisions if decision.field == field)


def with_driver(driver: str, **card: str) -> Host:
    return a_host(accelerators=(a_card(**card),), driver=Known(driver, "/proc/driver/nvidia/version"))  # type: ignore[arg-type]


def a_radeon(arch: str) -> Accelerator:
    return a_card(name="AMD card", vendor=Vendor.AMD, arch=arch)


@pytest.mark.parametrize(
    ("name", "build", "image", "runtime"),
    [
        ("rtx3060", "vllm 0.33.0 cuda", "vllm/vllm-openai", "process"),
        ("rtx4090", "vllm 0.33.0 cuda", "vllm/vllm-openai", "process"),
        ("rtx5090", "vllm 0.33.0 cuda", "vllm/vllm-openai", "process"),
        ("two-3090-nvml", "vllm 0.33.0 cuda", "vllm/vllm-openai", "process"),
        ("a100-mig-slice", "vllm 0.33.0 cuda", "vllm/vllm-openai", "container"),
        ("l40s", "vllm 0.33.0 cuda", "vllm/vllm-openai", "process"),
        ("h100", "vllm 0.33.0 cuda", "vllm/vllm-openai", "process"),
        ("gb10", "vllm 0.33.0 cuda", "vllm/vllm-openai", "process"),
        ("rtx-old-driver", "vllm 0.31.0 cuda", "vllm/vllm-openai:v0.31.0-cu129", "container"),
        ("amd-mi300x", "vllm 0.33.0 rocm", "vllm/vllm-openai-rocm", "container"),
        ("rx7900xtx", "vllm 0.33.0 rocm", "vllm/vllm-openai-rocm", "container"),
        ("strix-halo", "vllm 0.33.0 rocm", "vllm/vllm-openai-rocm", "container"),
        ("arc-b580", "vllm 0.33.0 xpu", "vllm/vllm-openai-xpu", "container"),
        ("bare-no-cards", "vllm 0.32.0 cpu", "vllm/vllm-openai-cpu", "process"),
    ],
)
def test_each_machine_has_its_build_and_image(name: str, build: str, image: str, runtime: str) -> None:
    choice = on(detect(Recorded.load(SNAPSHOTS / f"{name}.json")))
    assert f"{choice.build.engine} {choice.build.version} {choice.build.backend}" == build
    assert choice.image is not None
    assert (choice.image.reference, choice.runtime) == (image, runtime)
    fields = [decision.field for decision in choice.decisions]
    assert fields.count("runtime") == 1
    assert ("environment" in fields) is (runtime == "process")
    assert all(decision.reason and decision.source for decision in choice.decisions)


@pytest.mark.parametrize(
    ("card", "says"),
    [
        (a_card(name="Tesla T4", arch="sm_75"), "no code for sm_75"),
        (a_radeon("gfx90a"), "for gfx942 and gfx950 only"),
        (a_radeon("gfx1100"), "for gfx942 and gfx950 only"),
        (a_radeon("gfx1201"), "for gfx942 and gfx950 only"),
        (a_radeon("gfx1151"), "gfx1151 is no release"),
        (a_card(name="Intel Arc B580", vendor=Vendor.INTEL, arch="bmg"), "for Arc B only"),
    ],
)
def test_sglang_is_refused_where_it_has_no_code_and_vllm_is_offered(card: Accelerator, says: str) -> None:
    host = a_host(accelerators=(card,))
    assert on(host).build.engine == "vllm"
    with pytest.raises(InputError) as caught:
        on(host, engine="sglang")
    assert caught.value.id == "PL071"
    assert says in caught.value.why
    assert "--engine vllm" in caught.value.fix[0]


def test_sglang_needs_more_than_a_processor() -> None:
    with pytest.raises(InputError) as caught:
        on(a_host(), engine="sglang@0.5.23")
    assert "AMX" in caught.value.why


@pytest.mark.parametrize("card", [a_card(arch="sm_80"), a_card(arch="sm_120"), a_radeon("gfx942"), a_radeon("gfx950")])
def test_either_engine_is_taken_where_both_have_code_and_vllm_unasked(card: Accelerator) -> None:
    host = a_host(accelerators=(card,))
    assert on(host).build.engine == "vllm"
    assert "SGLang" in of(on(host), "engine").alternatives
    asked = on(host, engine="sglang")
    assert asked.build.engine == "sglang"
    assert asked.image is not None
    assert asked.image.command == ("sglang", "serve")
    assert of(asked, "engine").by == "--engine sglang"


def test_a_driver_of_cuda_12_gets_an_older_engine_and_is_told_what_would_help() -> None:
    decision = of(on(with_driver("575.57.08")), "engine")
    assert decision.value == "vLLM 0.31.0"
    assert "575.57.08" in decision.reason
    assert decision.alternatives[0] == "vLLM 0.33.0 after the driver is updated to 580 or later"
    assert not any("COMPATIBILITY" in way for way in decision.alternatives)


def test_a_data_centre_card_behind_r570_may_take_the_compatibility_libraries() -> None:
    ways = of(on(with_driver("570.133.20", name="NVIDIA H100 80GB HBM3", arch="sm_90")), "engine").alternatives
    assert "vLLM 0.33.0 in its image with VLLM_ENABLE_CUDA_COMPATIBILITY=1" in ways
    game = of(on(with_driver("570.133.20")), "engine").alternatives
    assert not any("COMPATIBILITY" in way for way in game)


@pytest.mark.parametrize(
    ("host", "engine", "says"),
    [
        (a_host(accelerators=(a_radeon("gfx1100"),)), "vllm", "only containers are supported on this card: its ROCm"),
        (with_driver("595.80"), "sglang", "SGLang 0.5.23 is served from its image only: "),
        (with_driver("575.57.08"), "vllm", "vLLM 0.31.0 is served from its image only: "),
    ],
)
def test_a_container_is_due_to_the_card_or_to_the_build(host: Host, engine: str, says: str) -> None:
    assert of(on(host, engine=engine), "runtime").reason.startswith(says)


@pytest.mark.parametrize(("driver", "asked"), [("470.82.01", "vllm"), ("550.144.03", "vllm@0.33.0")])
def test_a_driver_on_which_nothing_that_was_asked_for_starts_is_refused(driver: str, asked: str) -> None:
    with pytest.raises(EnvironmentMissing) as caught:
        on(with_driver(driver), engine=asked)
    assert caught.value.id == "HX004"
    assert driver in caught.value.what


def test_a_version_newer_than_the_table_is_marked_unverified() -> None:
    decision = of(on(with_driver("595.80"), engine="vllm@0.35.0"), "engine")
    assert (decision.value, decision.evidence) == ("vLLM 0.35.0", Evidence.ASSUMED)
    assert "unverified version: newer than 0.33.0" in decision.reason
    assert "unverified" not in of(on(with_driver("595.80")), "engine").reason


def test_an_old_card_that_only_llama_cpp_computes_on_is_said_to_be_one() -> None:
    host = detect(Recorded.load(SNAPSHOTS / "pascal-only.json"))
    decision = of(on(host), "engine")
    assert decision.alternatives == ("llama.cpp with a GGUF of the model on NVIDIA GeForce GTX 1080 Ti",)
    assert of(on(a_host()), "engine").alternatives == ()


def test_a_chip_in_slow_memory_is_pointed_to_a_gguf() -> None:
    decision = of(on(detect(Recorded.load(SNAPSHOTS / "strix-halo.json"))), "engine")
    assert "llama.cpp with a GGUF of the model" in decision.alternatives


def test_no_image_is_said_to_have_a_tag_that_nobody_read() -> None:
    decision = of(on(with_driver("595.80")), "image")
    assert decision.value == "vllm/vllm-openai"
    assert "looked up when it is pulled" in decision.reason
    seen = of(on(with_driver("575.57.08")), "image")
    assert seen.value.endswith(":v0.31.0-cu129")


def test_the_environment_says_how_no_compiler_is_needed() -> None:
    reason = of(on(with_driver("595.80")), "environment").reason
    assert "flashinfer-cubin==0.7.2.post1" in reason
    assert "Python >=3.11,<3.15" in reason


def test_an_architecture_that_no_table_knows_is_planned_and_said_to_be_unknown() -> None:
    decision = of(on(with_driver("610.1", name="NVIDIA RTX 6090", arch="sm_130")), "engine")
    assert "no table of this version knows this card" in decision.reason


def test_a_plan_for_a_container_says_why_nothing_is_started() -> None:
    host = detect(Recorded.load(SNAPSHOTS / "rx7900xtx.json"))
    choice = on(host)
    plan = decide(host=host, model=a_model(), service=a_service(), port=8000)
    error = only_in_a_container(replace(plan, build=choice.build, image=choice.image, decisions=choice.decisions))
    assert error.id == "PL072"
    assert "runs in a container only" in error.what
    assert "Python 3.12" in error.why
    assert error.fix[-1].endswith("selfhost up MODEL --device cpu")
