"""Headers by HTTP range from a hub on loopback: few bytes, each file once, and a reason when it does not work."""

import json
import struct
from pathlib import Path

import pytest

from selfhost.models import hub_headers
from selfhost.models.hub import Hub
from selfhost.shapes.host import Known, Unknown
from tests.fakes.hub import FakeHub


def shard(*, tensors: int, size: int = 16, name: str = "model.layers.{}.mlp.up_proj.weight") -> bytes:
    described = {
        name.format(one): {"dtype": "BF16", "shape": [size // 2], "data_offsets": [one * size, (one + 1) * size]}
        for one in range(tensors)
    }
    header = json.dumps(described).encode()
    return struct.pack("<Q", len(header)) + header + bytes(tensors * size)


def repo(folder: Path, shards: dict[str, bytes]) -> Path:
    home = folder / "repos" / "acme" / "big"
    home.mkdir(parents=True)
    (home / "config.json").write_text("{}")
    for name, data in shards.items():
        (home / name).write_bytes(data)
    return folder / "repos"


def names(count: int) -> list[str]:
    return [f"model-{one:05d}-of-{count:05d}.safetensors" for one in range(1, count + 1)]


def hub_at(url: str, folder: Path, **env: str) -> Hub:
    return Hub({"HOME": str(folder / "home"), "HF_ENDPOINT": url, **env})


def test_each_file_takes_one_small_request_and_later_none(tmp_path: Path) -> None:
    root = repo(tmp_path, {name: shard(tensors=3, size=100_000) for name in names(64)})
    with FakeHub(root) as fake:
        hub = hub_at(fake.url, tmp_path)
        commit = hub.commit("acme/big")
        found = hub.weights_headers("acme/big", commit)
        assert isinstance(found, Known)
        assert (found.value.total, found.value.files) == (64 * 300_000, 64)
        asked = [what for _, path, what in fake.requests if path.endswith(".safetensors")]
        assert asked == ["bytes=0-32767"] * 64
        fake.requests.clear()
        again = hub_at(fake.url, tmp_path).weights_headers("acme/big", commit)
        assert again == found
        assert fake.requests == []
    assert hub_at("http://127.0.0.1:9", tmp_path).weights_headers("acme/big", commit) == found


def test_a_long_header_takes_a_second_request_for_the_rest_alone(tmp_path: Path) -> None:
    data = shard(tensors=600)
    whole = 8 + struct.unpack("<Q", data[:8])[0]
    assert whole > hub_headers.FIRST_BYTES
    with FakeHub(repo(tmp_path, {"model.safetensors": data})) as fake:
        hub = hub_at(fake.url, tmp_path)
        found = hub.weights_headers("acme/big", hub.commit("acme/big"))
        assert isinstance(found, Known)
        assert found.value.total == 600 * 16
        asked = [what for _, path, what in fake.requests if path.endswith(".safetensors")]
        assert asked == ["bytes=0-32767", f"bytes=32768-{whole - 1}"]


def test_a_hub_that_ignores_ranges_is_read_as_far_as_needed(tmp_path: Path) -> None:
    files = {"model.safetensors": shard(tensors=600, size=20_000)}
    with FakeHub(repo(tmp_path, files), ignore_range=True, chunk_delay_s=0.05) as fake:
        hub = hub_at(fake.url, tmp_path)
        found = hub.weights_headers("acme/big", hub.commit("acme/big"))
    assert isinstance(found, Known)
    assert found.value.total == 600 * 20_000  # 12 MB at 64 KiB in 0.05 s would have taken nine seconds


@pytest.mark.parametrize(
    ("data", "word"),
    [
        (shard(tensors=3)[:-5], "By it the file has"),
        (shard(tensors=3) + b"more", "By it the file has"),
        (struct.pack("<Q", 5000) + b"{}", "It announces 5,000 bytes of header, and the file has 10"),
        (b"version https://git-lfs.github.com/spec/v1\noid sha256:1\nsize 9\n", "no header length"),
        (b"", "no header length"),
        (b"<!doctype html>", "no header length"),
        (struct.pack("<Q", 5) + b"notjs", "no JSON description"),
    ],
    ids=["cut", "too long", "cut header", "lfs", "empty", "page", "no json"],
)
def test_a_damaged_file_is_named_with_the_reason(tmp_path: Path, data: bytes, word: str) -> None:
    with FakeHub(repo(tmp_path, {"model.safetensors": data})) as fake:
        hub = hub_at(fake.url, tmp_path)
        commit = hub.commit("acme/big")
        found = hub.weights_headers("acme/big", commit)
        assert isinstance(found, Unknown)
        assert "the header of model.safetensors cannot be used" in found.reason
        assert word in found.reason
        assert hub.cache.tensors("acme/big", commit) is None


def test_without_permission_network_or_safetensors_it_stays_unknown(tmp_path: Path) -> None:
    root = repo(tmp_path, {"model.safetensors": shard(tensors=1)})
    with FakeHub(root, gated=("acme/big",)) as fake:
        hub = hub_at(fake.url, tmp_path)
        commit = hub.commit("acme/big")
        refused = hub.weights_headers("acme/big", commit)
        assert isinstance(refused, Unknown)
        assert "gated" in refused.reason
    offline = hub_at(fake.url, tmp_path, HF_HUB_OFFLINE="1").weights_headers("acme/big", commit)
    assert isinstance(offline, Unknown)
    (root / "acme" / "big" / "model.safetensors").rename(root / "acme" / "big" / "pytorch_model.bin")
    with FakeHub(root) as fake:
        hub = hub_at(fake.url, tmp_path)
        assert hub.weights_headers("acme/big", hub.commit("acme/big")) == Unknown("there are no safetensors files")


def test_a_damaged_note_of_the_sums_is_read_anew(tmp_path: Path) -> None:
    with FakeHub(repo(tmp_path, {"model.safetensors": shard(tensors=2)})) as fake:
        hub = hub_at(fake.url, tmp_path)
        commit = hub.commit("acme/big")
        first = hub.weights_headers("acme/big", commit)
        hub.cache._tensors_file("acme/big", commit).write_text('{"parts": [{"kind": "unheard"}], "files": 1}')
        assert hub.weights_headers("acme/big", commit) == first


def test_a_hub_that_takes_too_long_is_left(monkeypatch: pytest.MonkeyPatch) -> None:
    import threading

    monkeypatch.setattr(hub_headers, "BUDGET_S", 0.05)
    over = threading.Event()

    def slow(_name: str, _start: int, _length: int) -> bytes:
        over.wait(5)
        return b""

    found = hub_headers.read_all({"a.safetensors": 100}, slow)
    over.set()
    assert isinstance(found, Unknown)
    assert "did not come within" in found.reason
