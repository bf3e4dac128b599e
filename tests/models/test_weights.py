"""Weights judged by their headers: whole, cut, or something else under their name."""

import io
import json
import pickle
import struct
import zipfile
from pathlib import Path

import pytest

from selfhost.core.errors import InputError
from selfhost.models import weights
from selfhost.shapes.host import Known, Unknown

POINTER = b"version https://git-lfs.github.com/spec/v1\noid sha256:1\nsize 4000000000\n"
TINY = Path(__file__).parents[1] / "assets" / "tiny-reasoner"


def tensors(size: int = 64) -> bytes:
    header = json.dumps(
        {"__metadata__": {"format": "pt"}, "w": {"dtype": "BF16", "shape": [size // 2], "data_offsets": [0, size]}}
    )
    return struct.pack("<Q", len(header)) + header.encode() + bytes(size)


def model(folder: Path, **files: bytes) -> Path:
    (folder / "config.json").write_text("{}", encoding="utf-8")
    for name, data in files.items():
        (folder / name.replace("__", ".").replace("_of_", "-of-")).write_bytes(data)
    return folder


def sharded(folder: Path, *, there: tuple[int, ...]) -> Path:
    names = [f"model-{number:05d}-of-00003.safetensors" for number in (1, 2, 3)]
    index = {"metadata": {"total_size": 192}, "weight_map": {f"w{n}": name for n, name in enumerate(names)}}
    model(folder)
    (folder / "model.safetensors.index.json").write_text(json.dumps(index), encoding="utf-8")
    for number in there:
        (folder / names[number - 1]).write_bytes(tensors())
    return folder


def refusal(folder: Path) -> InputError:
    with pytest.raises(InputError) as refused:
        weights.check(folder)
    assert refused.value.why
    assert refused.value.fix
    return refused.value


def test_the_tiny_reasoner_has_the_bytes_of_its_823_000_parameters() -> None:
    weights.check(TINY)
    # vocabulary 263·128 + 4 layers of (128·(128+64+64) + 128·128 + 3·128·384 + 2·128 + 2·32) + final norm 128, in BF16
    layer = 128 * (128 + 64 + 64) + 128 * 128 + 3 * 128 * 384 + 2 * 128 + 2 * 32
    assert weights.total_bytes(TINY) == Known(2 * (263 * 128 + 4 * layer + 128), "safetensors headers")


def test_shards_are_summed(tmp_path: Path) -> None:
    sharded(tmp_path, there=(1, 2, 3))
    weights.check(tmp_path)
    assert weights.total_bytes(tmp_path) == Known(192, "safetensors headers")


def test_a_missing_shard_is_named(tmp_path: Path) -> None:
    error = refusal(sharded(tmp_path, there=(1, 3)))
    assert error.id == "MD015"
    assert "1 of 3 weight files are missing" in error.what
    assert "model-00002-of-00003.safetensors" in error.what


def test_a_missing_shard_is_noticed_without_an_index(tmp_path: Path) -> None:
    sharded(tmp_path, there=(1, 3))
    (tmp_path / "model.safetensors.index.json").unlink()
    assert "model-00002-of-00003.safetensors" in refusal(tmp_path).what


def test_leftovers_of_a_stopped_download_are_the_reason_given(tmp_path: Path) -> None:
    sharded(tmp_path, there=(1,))
    (tmp_path / ".cache").mkdir()
    (tmp_path / ".cache" / "abc.incomplete").touch()
    assert ".incomplete" in refusal(tmp_path).why


def test_a_cut_file_shows_both_sizes_and_how_to_fetch_it_again(tmp_path: Path) -> None:
    whole = tensors(1000)
    model(tmp_path, model__safetensors=whole[:-100])
    error = refusal(tmp_path)
    assert error.id == "MD014"
    assert f"{len(whole) - 100:,} bytes, expected {len(whole):,} bytes" in error.what
    assert "hf download" in error.fix[0]


def test_a_cut_file_in_the_hub_cache_knows_its_own_name(tmp_path: Path) -> None:
    commit = "0123456789abcdef0123456789abcdef01234567"
    folder = tmp_path / "models--acme--tiny-1" / "snapshots" / commit
    folder.mkdir(parents=True)
    model(folder, model__safetensors=tensors()[:-1])
    assert f"hf download acme/tiny-1 model.safetensors --revision {commit} --force-download" in refusal(folder).fix[0]


@pytest.mark.parametrize(
    ("data", "id", "word"),
    [
        (b"", "MD016", "is empty"),
        (POINTER, "MD016", "Git LFS pointer, not the weights of 3.7 GiB"),
        (b"<!DOCTYPE html><html><body>log in</body></html>", "MD016", "is a web page"),
        (b"\xff" * 64, "MD016", "is not a safetensors file"),
        (b"\x01\x02", "MD016", "is not a safetensors file"),
        (struct.pack("<Q", 500) + b"{}", "MD014", "for the header alone"),
        (struct.pack("<Q", 5) + b"notjs", "MD016", "damaged header"),
        (struct.pack("<Q", 7) + b'{"w":1}', "MD016", "damaged header"),
        (struct.pack("<Q", 32) + b'{"w":{"data_offsets":[0,"many"]}}'[:32], "MD016", "damaged header"),
        (tensors() + b"more", "MD014", "expected"),
    ],
    ids=["empty", "lfs", "html", "garbage", "tiny", "cut header", "no json", "no tensors", "no numbers", "too long"],
)  # fmt: skip
def test_what_is_no_safetensors_file_is_called_by_its_name(tmp_path: Path, data: bytes, id: str, word: str) -> None:
    error = refusal(model(tmp_path, model__safetensors=data))
    assert error.id == id
    assert word in error.what


def test_an_lfs_pointer_is_cured_by_lfs(tmp_path: Path) -> None:
    model(tmp_path, model__safetensors=b"version https://git-lfs.github.com/spec/v1\n")
    assert f"git -C {tmp_path} lfs pull" in refusal(tmp_path).fix[0]


def test_a_link_into_nowhere_is_a_broken_download(tmp_path: Path) -> None:
    model(tmp_path, model__safetensors=tensors())
    (tmp_path / "tokenizer.json").symlink_to("../../blobs/gone")
    error = refusal(tmp_path)
    assert error.id == "MD015"
    assert "tokenizer.json -> ../../blobs/gone" in error.evidence


def test_a_folder_without_weights_is_refused(tmp_path: Path) -> None:
    assert refusal(model(tmp_path)).id == "MD018"
    assert isinstance(weights.total_bytes(tmp_path), Unknown)


def test_a_damaged_index_is_no_crash(tmp_path: Path) -> None:
    model(tmp_path, model__safetensors__index__json=b"{")
    assert "is not a shard index" in refusal(tmp_path).what


def zipped(size: int = 10) -> bytes:
    """As torch.save writes it, by form."""
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w") as archive:
        archive.writestr("model/data.pkl", bytes(size))
    return file.getvalue()


def test_whole_pickles_alone_are_weights_too(tmp_path: Path) -> None:
    model(tmp_path, pytorch_model__bin=zipped())
    weights.check(tmp_path)
    assert weights.pickled(tmp_path)
    assert weights.total_bytes(tmp_path) == Known(len(zipped()), "sizes of the pickle files")


def test_pickles_that_nobody_allowed_are_refused_and_named(tmp_path: Path) -> None:
    model(tmp_path, pytorch_model__bin=zipped())
    with pytest.raises(InputError, match="only as pickles") as refused:
        weights.check(tmp_path, allow_pickle=False)
    assert refused.value.id == "MD017"
    assert "--allow-pickle" in refused.value.fix[1]
    assert refused.value.evidence == "pytorch_model.bin"


def test_pickles_of_old_torch_are_no_archive_and_pass(tmp_path: Path) -> None:
    weights.check(model(tmp_path, pytorch_model__bin=pickle.dumps({"w": 1}, protocol=2)))


@pytest.mark.parametrize(
    ("data", "id", "word"),
    [
        (zipped(5000)[:-30], "MD014", "the end of its zip archive"),
        (b"", "MD016", "is empty"),
        (POINTER, "MD016", "Git LFS pointer"),
        (b"<html>log in</html>", "MD016", "is a web page"),
    ],
    ids=["cut", "empty", "lfs", "html"],
)
def test_a_damaged_pickle_is_noticed_without_loading_it(tmp_path: Path, data: bytes, id: str, word: str) -> None:
    error = refusal(model(tmp_path, pytorch_model__bin=data))
    assert (error.id, word in error.what) == (id, True)


def test_a_missing_pickle_is_noticed_by_the_numbering(tmp_path: Path) -> None:
    model(tmp_path)
    (tmp_path / "pytorch_model-00001-of-00002.bin").write_bytes(zipped())
    assert "pytorch_model-00002-of-00002.bin" in refusal(tmp_path).what


@pytest.mark.parametrize("name", ["consolidated.00.pth", "adapter_model.bin", "optimizer.pt", "model.ckpt"])
def test_what_the_engine_would_not_load_is_no_weights(tmp_path: Path, name: str) -> None:
    model(tmp_path)
    (tmp_path / name).write_bytes(zipped())
    assert refusal(tmp_path).id == "MD018"
    assert not weights.pickled(tmp_path)


def test_pickles_beside_safetensors_do_not_matter(tmp_path: Path) -> None:
    model(tmp_path, model__safetensors=tensors(), pytorch_model__bin=b"x", training_args__bin=b"x")
    assert not weights.pickled(tmp_path)
    weights.check(tmp_path, allow_pickle=False)


def test_the_twin_files_of_mistral_are_counted_once(tmp_path: Path) -> None:
    model(tmp_path, model__safetensors=tensors(), consolidated__safetensors=tensors())
    assert weights.total_bytes(tmp_path) == Known(64, "safetensors headers")


def test_a_header_without_tensors_is_no_weights(tmp_path: Path) -> None:
    error = refusal(model(tmp_path, model__safetensors=struct.pack("<Q", 2) + b"{}"))
    assert error.id == "MD016"
    assert "holds no tensors" in error.what


@pytest.mark.parametrize(
    ("name", "id"), [("qwen3-4b-q4_k_m.gguf", "MD005"), ("adapter_config.json", "MD006")], ids=["gguf", "adapter"]
)
def test_what_has_a_config_and_is_still_no_model_is_called_by_its_name(tmp_path: Path, name: str, id: str) -> None:
    (tmp_path / name).write_bytes(b"GGUF")
    assert refusal(model(tmp_path)).id == id
