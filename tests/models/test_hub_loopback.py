"""The real hub library against a hub on loopback: download, resume, refusals, silence when nothing is needed."""

import errno
import json
import shutil
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from selfhost.core.errors import Busy, EnvironmentMissing, InputError, SelfhostError
from selfhost.core.lock import hold
from selfhost.models import hub_exceptions, hub_meter, hub_resume
from selfhost.models.hub import Hub
from selfhost.models.hub_cache import HubCache
from selfhost.models.hub_files import wanted
from selfhost.shapes.event import Event
from selfhost.shapes.host import Known, Unknown
from tests.fakes.hub import FakeHub

TINY = Path(__file__).parents[1] / "assets" / "tiny-reasoner"
WEIGHTS_BYTES = 1_647_872  # size of the file, README of the tiny reasoner
TOKEN = "hf_" + "secret" * 4
Start = Callable[..., FakeHub]


class Heard:
    """A sink that remembers."""

    def __init__(self) -> None:
        self.events: list[Event] = []

    def on(self, event: Event) -> None:
        self.events.append(event)

    def close(self) -> None:
        return None


@pytest.fixture
def start(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Start]:
    """Starts fake hubs that hold `acme/tiny`."""
    monkeypatch.setattr(hub_resume, "_PAUSE_S", 0.0)
    repo = tmp_path / "repos" / "acme" / "tiny"
    shutil.copytree(TINY, repo)
    (repo / "README.md").write_text("card", encoding="utf-8")
    (repo / "pytorch_model.bin").write_bytes(b"pickle")
    (repo / "original").mkdir()
    (repo / "original" / "consolidated.safetensors").write_bytes(b"twin")
    running: list[FakeHub] = []

    def begin(**options: Any) -> FakeHub:
        running.append(FakeHub(tmp_path / "repos", **options).__enter__())
        return running[-1]

    yield begin
    for one in running:
        one.stop()


def hub_at(url: str, tmp_path: Path, **env: str) -> Hub:
    return Hub({"HOME": str(tmp_path / "home"), "HF_ENDPOINT": url, **env})


def refused(hub: Hub, repo_id: str = "acme/tiny", revision: str = "") -> SelfhostError:
    with pytest.raises(SelfhostError) as error:
        hub.download(repo_id, revision, sink=Heard(), step="fetch")
    assert TOKEN not in repr(vars(error.value))
    return error.value


def test_a_download_brings_what_is_needed_and_tells_its_progress(start: Start, tmp_path: Path) -> None:
    fake, heard = start(), Heard()
    hub = hub_at(fake.url, tmp_path)
    folder = Path(hub.download("acme/tiny", "", sink=heard, step="fetch"))
    assert (folder / "model.safetensors").read_bytes() == (TINY / "model.safetensors").read_bytes()
    names = {path.name for path in folder.rglob("*")}
    assert {"config.json", "tokenizer.json", "chat_template.jinja"} <= names
    assert not {"pytorch_model.bin", "README.md", "original"} & names
    done = [event.done for event in heard.events if event.done is not None]
    assert done == sorted(done)
    assert heard.events[-1].state == "done"
    assert heard.events[-1].done == heard.events[-1].total == sum(p.stat().st_size for p in folder.iterdir())


def test_a_second_time_nothing_is_asked(start: Start, tmp_path: Path) -> None:
    fake, heard = start(), Heard()
    first = hub_at(fake.url, tmp_path).download("acme/tiny", "", sink=Heard(), step="fetch")
    fake.requests.clear()
    again = hub_at(fake.url, tmp_path)
    assert again.revision("acme/tiny", "main") == Known(fake.commit("acme/tiny"), str(again.cache.root))
    assert again.snapshot("acme/tiny", "") == first
    assert again.card_files("acme/tiny", "main") == first
    assert again.download("acme/tiny", "", sink=heard, step="fetch") == first
    assert [event.state for event in heard.events] == ["unchanged"]
    assert fake.requests == []


def test_a_branch_that_was_resolved_first_and_downloaded_by_commit_is_found_without_the_hub(
    start: Start, tmp_path: Path
) -> None:
    fake = start()
    commit = hub_at(fake.url, tmp_path).commit("acme/tiny", "")
    first = hub_at(fake.url, tmp_path).download("acme/tiny", commit, sink=Heard(), step="fetch")
    later = hub_at("http://127.0.0.1:9", tmp_path)
    assert later.snapshot("acme/tiny", "main") == first
    assert later.commit("acme/tiny") == commit
    ref = later.cache.storage("acme/tiny") / "refs" / "main"
    assert ref.read_text() == commit
    ref.unlink()  # killed between the last file and this note
    assert hub_at("http://127.0.0.1:9", tmp_path).snapshot("acme/tiny", "main") == first


def test_an_interrupted_newer_state_does_not_hide_the_whole_older_one(start: Start, tmp_path: Path) -> None:
    fake = start()
    hub = hub_at(fake.url, tmp_path)
    first = hub.download("acme/tiny", "", sink=Heard(), step="fetch")
    hub.cache.note("acme/tiny", "main", "f" * 40)
    assert hub_at("http://127.0.0.1:9", tmp_path).snapshot("acme/tiny", "") == first


def _size(path: Path) -> int:
    """0 for one that got its final name since it was listed."""
    try:
        return path.stat().st_size
    except FileNotFoundError:
        return 0


def test_a_killed_download_is_continued_by_the_next_process(start: Start, tmp_path: Path) -> None:
    fake = start(chunk_delay_s=0.02)
    code = (
        "import sys; from selfhost.models.hub import Hub; from tests.models.test_hub_loopback import Heard; "
        "Hub({'HOME': sys.argv[1], 'HF_ENDPOINT': sys.argv[2]}).download('acme/tiny', '', sink=Heard(), step='fetch')"
    )
    argv = [sys.executable, "-c", code, str(tmp_path / "home"), fake.url]
    killed = subprocess.Popen(argv, cwd=Path(__file__).parents[2])
    blobs = tmp_path / "home" / ".cache" / "huggingface" / "hub" / "models--acme--tiny" / "blobs"
    try:
        while killed.poll() is None and not any(_size(path) > 200_000 for path in blobs.glob("*.incomplete")):
            threading.Event().wait(0.005)
    finally:
        killed.kill()
        killed.wait(10)
    fake.chunk_delay_s = 0.0
    fake.requests.clear()
    folder = hub_at(fake.url, tmp_path).download("acme/tiny", "", sink=Heard(), step="fetch")
    assert (Path(folder) / "model.safetensors").read_bytes() == (TINY / "model.safetensors").read_bytes()
    ranges = [asked for method, path, asked in fake.requests if method == "GET" and path.endswith(".safetensors")]
    assert len(ranges) == 1
    assert int(ranges[0].removeprefix("bytes=").removesuffix("-")) >= 200_000


def test_the_revision_is_a_commit_and_sizes_come_from_the_file_list(start: Start, tmp_path: Path) -> None:
    fake = start()
    hub = hub_at(fake.url, tmp_path)
    found = hub.revision("acme/tiny")
    assert isinstance(found, Known)
    assert found.value == fake.commit("acme/tiny")
    assert len(found.value) == 40
    assert hub.weights_size("acme/tiny", "") == Known(WEIGHTS_BYTES, "the repository's file list")
    assert hub.size("acme/tiny", "").value > WEIGHTS_BYTES  # type: ignore[union-attr]
    assert not fake.paths("HEAD")
    assert len(fake.paths("GET")) == 2  # the revision once, the file list once


def test_the_card_files_alone_are_small_and_no_whole_snapshot(start: Start, tmp_path: Path) -> None:
    fake = start()
    hub = hub_at(fake.url, tmp_path)
    folder = Path(hub.card_files("acme/tiny", ""))
    assert json.loads((folder / "config.json").read_text())["model_type"] == "qwen3"
    assert (folder / "chat_template.jinja").is_file()
    assert not (folder / "model.safetensors").exists()
    assert hub.snapshot("acme/tiny", fake.commit("acme/tiny")) is None


@pytest.mark.parametrize("ignore_range", [False, True])
def test_a_broken_connection_is_continued(start: Start, tmp_path: Path, *, ignore_range: bool) -> None:
    fake = start(break_after=700_000, breaks=1, ignore_range=ignore_range)
    folder = hub_at(fake.url, tmp_path).download("acme/tiny", "", sink=Heard(), step="fetch")
    assert (Path(folder) / "model.safetensors").read_bytes() == (TINY / "model.safetensors").read_bytes()
    ranges = [asked for method, path, asked in fake.requests if method == "GET" and path.endswith(".safetensors")]
    assert ranges == ["", "bytes=700000-"]


def test_a_later_command_continues_where_an_earlier_one_was_cut_off(
    start: Start, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(hub_resume, "ATTEMPTS_WITHOUT_PROGRESS", 0)
    fake = start(break_after=500_000, breaks=1)
    error = refused(hub_at(fake.url, tmp_path))
    assert (type(error), error.id) == (EnvironmentMissing, "MD020")
    fake.requests.clear()
    hub_at(fake.url, tmp_path).download("acme/tiny", "", sink=Heard(), step="fetch")
    assert ("GET", "bytes=500000-") in [(method, asked) for method, _, asked in fake.requests]


def test_debris_of_a_killed_download_of_the_library_is_removed(start: Start, tmp_path: Path) -> None:
    fake = start()
    hub = hub_at(fake.url, tmp_path)
    etag = fake.etag(tmp_path / "repos" / "acme" / "tiny" / "model.safetensors")
    debris = hub.cache.storage("acme/tiny") / "blobs" / f"{etag}.0a1b2c3d.incomplete"
    debris.parent.mkdir(parents=True)
    debris.write_bytes(b"half")
    hub.download("acme/tiny", "", sink=Heard(), step="fetch")
    assert not debris.exists()


def test_bytes_that_are_not_the_announced_ones_are_thrown_away(start: Start, tmp_path: Path) -> None:
    hub = hub_at(start(corrupt=True).url, tmp_path)
    error = refused(hub)
    assert error.id == "MD020"
    assert "SHA-256" in error.why
    assert not list(hub.cache.storage("acme/tiny").glob("blobs/*.incomplete"))


def test_progress_never_goes_back_and_never_beyond_the_whole(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(hub_meter, "_EVENT_EVERY_S", 0.0)
    heard = Heard()
    meter = hub_meter.Meter(heard, step="fetch", text="acme/tiny", total=100)
    for count in (10, 40, 20, 60):  # at 40 the server ignored the range and began anew
        meter.file_is_at(count)
    meter.start_file()
    meter.file_is_at(50)
    assert [event.done for event in heard.events] == [10, 40, 40, 60, 100]


def test_a_gated_model_without_a_token_names_the_page_and_the_login(start: Start, tmp_path: Path) -> None:
    fake = start(gated=("acme/tiny",))
    error = refused(hub_at(fake.url, tmp_path))
    assert (type(error), error.id) == (EnvironmentMissing, "MD007")
    assert "no token was sent" in error.what
    assert f"{fake.url}/acme/tiny" in error.fix[0]
    assert error.fix[0].endswith("\nhf auth login")
    assert "HF_TOKEN is not set" in error.why


def test_a_gated_model_with_a_stranger_s_token_says_where_the_token_came_from(start: Start, tmp_path: Path) -> None:
    error = refused(hub_at(start(gated=("acme/tiny",)).url, tmp_path, HF_TOKEN=TOKEN))
    assert error.id == "MD007"
    assert "The token from HF_TOKEN was sent" in error.why


def test_the_token_file_opens_a_gated_model(start: Start, tmp_path: Path) -> None:
    fake = start(gated=("acme/tiny",), token=TOKEN)
    save_token(tmp_path, f"{TOKEN}\n")
    assert hub_at(fake.url, tmp_path).download("acme/tiny", "", sink=Heard(), step="fetch")
    assert set(fake.tokens) == {TOKEN}


def save_token(tmp_path: Path, text: str) -> Path:
    token_file = tmp_path / "home" / ".cache" / "huggingface" / "token"
    token_file.parent.mkdir(parents=True)
    token_file.write_text(text, encoding="utf-8")
    return token_file


@pytest.mark.parametrize("name", ["HF_TOKEN", "HUGGING_FACE_HUB_TOKEN"])
def test_a_wrong_token_of_a_variable_is_cured_by_taking_the_variable_away(
    start: Start, tmp_path: Path, name: str
) -> None:
    error = refused(hub_at(start(token=TOKEN).url, tmp_path, **{name: "hf_old"}))
    assert error.id == "MD019"
    assert [fix.partition("\n")[2] for fix in error.fix] == [f"unset {name}\nhf auth login", f"unset {name}"]


def test_a_wrong_token_of_the_file_is_cured_by_another_login(start: Start, tmp_path: Path) -> None:
    save_token(tmp_path, "hf_old")
    error = refused(hub_at(start(token=TOKEN).url, tmp_path))
    assert error.id == "MD019"
    assert [fix.partition("\n")[2] for fix in error.fix] == ["hf auth login", "hf auth logout"]


def test_what_is_said_of_a_missing_token_was_looked_at(start: Start, tmp_path: Path) -> None:
    fake = start(gated=("acme/tiny",))
    said = refused(hub_at(fake.url, tmp_path)).why
    token_file = save_token(tmp_path, " \n")
    assert f"{token_file} does not exist" in said
    assert f"{token_file} is empty" in refused(hub_at(fake.url, tmp_path)).why
    token_file.write_bytes(b"\xff\xfe")
    assert f"{token_file} holds no text" in refused(hub_at(fake.url, tmp_path)).why
    token_file.unlink()
    token_file.mkdir()
    assert f"{token_file} cannot be read (Is a directory)" in refused(hub_at(fake.url, tmp_path)).why
    kept = hub_at(fake.url, tmp_path, HF_HUB_DISABLE_IMPLICIT_TOKEN="1")
    assert "HF_HUB_DISABLE_IMPLICIT_TOKEN keeps" in refused(kept).why


def test_a_missing_model_says_that_it_may_be_private_and_offers_neighbours(start: Start, tmp_path: Path) -> None:
    error = refused(hub_at(start().url, tmp_path), "Qwen/Qwen3-4")
    assert (type(error), error.id) == (InputError, "MD008")
    assert "or it is private" in error.what
    assert "perhaps Qwen/Qwen3-4B" in error.fix


def test_a_missing_revision_is_told_apart_from_a_missing_model(start: Start, tmp_path: Path) -> None:
    error = refused(hub_at(start().url, tmp_path), revision="v2")
    assert (error.id, "no revision `v2`" in error.what) == ("MD009", True)


def test_a_rate_limit_says_how_long_to_wait(start: Start, tmp_path: Path) -> None:
    error = refused(hub_at(start(rate_limit=True).url, tmp_path))
    assert (type(error), error.id) == (EnvironmentMissing, "MD011")
    assert "wait 17 seconds" in error.fix[0]


def test_a_hub_in_trouble_is_not_a_missing_network(start: Start, tmp_path: Path) -> None:
    assert refused(hub_at(start(status=503).url, tmp_path)).id == "MD025"


def test_no_network_names_the_host_and_the_proxy(tmp_path: Path) -> None:
    hub = hub_at("http://127.0.0.1:9", tmp_path, HTTPS_PROXY="http://ana:geheim@proxy.example:3128")
    error = refused(hub)
    assert (type(error), error.id) == (EnvironmentMissing, "MD010")
    assert "http://127.0.0.1:9" in error.what
    assert "http://proxy.example:3128" in error.why
    assert "geheim" not in repr(vars(error))
    assert isinstance(hub.revision("acme/tiny"), Unknown)
    assert isinstance(hub.size("acme/tiny", ""), Unknown)
    reached = hub.reachable()
    assert isinstance(reached, Known)
    assert not reached.value


def test_offline_is_respected_without_a_single_request(start: Start, tmp_path: Path) -> None:
    fake = start()
    hub = hub_at(fake.url, tmp_path, HF_HUB_OFFLINE="1")
    error = refused(hub)
    assert (type(error), error.id) == (EnvironmentMissing, "MD013")
    assert "hf download acme/tiny" in error.fix[0]
    assert hub.reachable() == Known(value=False, how="HF_HUB_OFFLINE is set")
    assert fake.requests == []


@pytest.mark.parametrize(
    ("env", "by"),
    [
        ({"TRANSFORMERS_OFFLINE": "1"}, "TRANSFORMERS_OFFLINE"),
        ({"HF_HUB_OFFLINE": "yes", "TRANSFORMERS_OFFLINE": "1"}, "HF_HUB_OFFLINE"),
        ({"HF_HUB_OFFLINE": "0", "TRANSFORMERS_OFFLINE": "1"}, ""),
        ({"HF_HUB_OFFLINE": ""}, ""),
    ],
)
def test_the_variable_that_is_blamed_is_the_one_that_forbids(tmp_path: Path, env: dict[str, str], by: str) -> None:
    hub = hub_at("http://127.0.0.1:9", tmp_path, **env)
    assert hub.cache.offline_by == by
    error = refused(hub)
    assert error.id == ("MD013" if by else "MD010")
    if by:
        assert f"{by} forbids fetching it" in error.what
        assert f"\n{by}=0 hf download acme/tiny" in error.fix[0]
        assert hub.reachable() == Known(value=False, how=f"{by} is set")


def test_reaching_is_asked_once(start: Start, tmp_path: Path) -> None:
    fake = start()
    hub = hub_at(fake.url, tmp_path)
    first = hub.reachable()
    assert isinstance(first, Known)
    assert first.value
    assert hub.reachable() == first
    assert len(fake.requests) == 1


@pytest.mark.parametrize(
    ("files", "id"),
    [
        (["model.Q4_K_M.gguf", "README.md"], "MD005"),
        (["adapter_config.json", "adapter_model.safetensors"], "MD006"),
        (["config.json", "model.onnx"], "MD018"),
        (["data.json"], "MD003"),
    ],
)
def test_a_repository_without_a_servable_model_is_refused_by_its_list(
    start: Start, tmp_path: Path, files: list[str], id: str
) -> None:
    repo = tmp_path / "repos" / "acme" / "other"
    repo.mkdir(parents=True, exist_ok=True)
    for name in files:
        (repo / name).write_bytes(b"{}")
    error = refused(hub_at(start().url, tmp_path), "acme/other")
    assert (type(error), error.id) == (InputError, id)


def test_a_full_disk_is_told_before_the_first_byte(
    start: Start, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    fake = start()
    hub = hub_at(fake.url, tmp_path)
    monkeypatch.setattr(shutil, "disk_usage", lambda _: shutil._ntuple_diskusage(10**12, 10**12, 1_000_000))
    error = refused(hub)
    assert error.id == "MD012"
    assert not fake.paths("HEAD")
    assert "Nothing was downloaded" in error.why


def a_disk(monkeypatch: pytest.MonkeyPatch, free: int) -> None:
    monkeypatch.setattr(shutil, "disk_usage", lambda _: shutil._ntuple_diskusage(10**12, 10**12, free))


def test_a_disk_with_room_for_the_files_alone_is_refused_with_both_figures(
    start: Start, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    fake = start()
    hub = hub_at(fake.url, tmp_path)
    a_disk(monkeypatch, 40 * 1024**2)
    error = refused(hub)
    assert error.id == "MD012"
    assert "needs 65.6 MiB" in error.what  # 1.6 MiB of files and 64 MiB beside them
    assert "40.0 MiB are free" in error.what
    assert "1.6 MiB are still to come, and 64.0 MiB must stay free" in error.why
    assert not fake.paths("HEAD")


def test_a_disk_that_became_full_says_what_is_still_to_come(
    start: Start, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    fake = start()
    hub = hub_at(fake.url, tmp_path)

    def full(*_: object, **__: object) -> None:
        a_disk(monkeypatch, 4096)
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(hub_resume, "_fill", full)
    error = refused(hub)
    assert error.id == "MD029"
    assert "4.0 KiB are free there now; 1.6 MiB are still to come" in error.why


def test_the_folder_of_downloads_is_the_users_own_cache(tmp_path: Path) -> None:
    assert hub_at("http://127.0.0.1:9", tmp_path, HF_HOME="/disk/hf").cache_folder == "/disk/hf/hub"


@pytest.mark.parametrize(
    ("holder", "name", "look"),
    [({"pid": 4711}, "pid 4711", "ps -fp 4711"), ({}, "another program", "fuser -v ")],
    ids=["ours", "the library's"],
)
def test_another_download_of_the_same_file_is_named_and_not_waited_for_for_ever(
    start: Start, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, holder: dict[str, object], name: str, look: str
) -> None:
    monkeypatch.setattr(hub_resume, "WAIT_FOR_OTHER_S", 0.6)
    fake, heard = start(), Heard()
    hub = hub_at(fake.url, tmp_path)
    etag = fake.etag(tmp_path / "repos" / "acme" / "tiny" / "model.safetensors")
    with (
        hold(hub.cache.root / ".locks" / "models--acme--tiny" / f"{etag}.lock", holder),
        pytest.raises(Busy, match=f"{name} has been downloading acme/tiny") as refused,
    ):
        hub.download("acme/tiny", "", sink=heard, step="fetch")
    assert refused.value.id == "MD026"
    assert f"\n{look}" in refused.value.fix[0]
    assert f"waiting for {name}, which downloads acme/tiny too" in [event.text for event in heard.events]
    assert hub.download("acme/tiny", "", sink=heard, step="fetch")


def test_errors_of_the_file_system_are_told_apart(tmp_path: Path) -> None:
    cache = HubCache.of({"HOME": str(tmp_path)}, listings=tmp_path)
    cache.root.mkdir(parents=True)
    expected = {errno.ENOSPC: "MD029", errno.EACCES: "MD024", errno.EROFS: "MD024", errno.EIO: "MD020"}
    for number, words in expected.items():
        said = hub_exceptions.in_words(OSError(number, "no", "/x"), "acme/tiny", asked="main", cache=cache, env={})
        assert said.id == words


def whole(start: Start, tmp_path: Path) -> tuple[Hub, Path]:
    hub = hub_at(start().url, tmp_path)
    return hub, Path(hub.download("acme/tiny", "", sink=Heard(), step="fetch"))


@pytest.mark.parametrize(
    ("name", "damage"),
    [
        ("model.safetensors", "cut"),
        ("model.safetensors", "dangling"),
        ("tokenizer.json", "cut"),
        ("config.json", "gone"),
    ],
)
def test_a_damaged_snapshot_is_not_taken_for_whole_and_is_repaired(
    start: Start, tmp_path: Path, name: str, damage: str
) -> None:
    hub, folder = whole(start, tmp_path)
    blob = (folder / name).resolve()
    if damage == "gone":
        (folder / name).unlink()
    elif damage == "dangling":
        blob.unlink()
    else:
        blob.write_bytes(blob.read_bytes()[:-1])
    assert hub.snapshot("acme/tiny", "main") is None
    repaired = Path(hub.download("acme/tiny", "", sink=Heard(), step="fetch"))
    assert (repaired / name).read_bytes() == (TINY / name).read_bytes()


def test_a_snapshot_of_another_program_is_judged_by_its_structure(start: Start, tmp_path: Path) -> None:
    hub, folder = whole(start, tmp_path)
    shutil.rmtree(hub.cache.listings)
    assert hub.snapshot("acme/tiny", "") == str(folder)
    (folder / "tokenizer.json").unlink()
    assert hub.snapshot("acme/tiny", "") is None


def test_variables_lead_to_the_cache_as_in_the_library(tmp_path: Path) -> None:
    def root(**env: str) -> str:
        return str(HubCache.of({"HOME": "/home/ana", **env}, listings=tmp_path).root)

    assert root() == "/home/ana/.cache/huggingface/hub"
    assert root(XDG_CACHE_HOME="/c") == "/c/huggingface/hub"
    assert root(HF_HOME="~/hf") == "/home/ana/hf/hub"
    assert root(HF_HOME="/d", HF_HUB_CACHE="/e") == "/e"


def test_a_token_never_shows_itself(tmp_path: Path) -> None:
    cache = HubCache.of({"HOME": str(tmp_path), "HF_TOKEN": TOKEN}, listings=tmp_path)
    assert cache.token is not None
    assert TOKEN not in repr(cache)


def test_of_several_formats_only_one_is_wanted() -> None:
    listing = dict.fromkeys(
        [
            "config.json", "tokenizer.json", "model-00001-of-00002.safetensors", "model-00002-of-00002.safetensors",
            "model.safetensors.index.json", "model.fp16.safetensors", "consolidated.safetensors", "pytorch_model.bin",
            "pytorch_model.bin.index.json", "original/params.json", "onnx/model.onnx", "onnx/config.json", "a.gguf",
            "modeling_acme.py", "additional_chat_templates/rag.jinja", ".gitattributes", "logo.png", "tf_model.h5",
        ],
        1,
    )  # fmt: skip
    assert sorted(wanted(listing)) == [
        "additional_chat_templates/rag.jinja", "config.json", "model-00001-of-00002.safetensors",
        "model-00002-of-00002.safetensors", "model.safetensors.index.json", "modeling_acme.py", "tokenizer.json",
    ]  # fmt: skip
    assert list(wanted({"pytorch_model.bin": 9, "config.json": 1, "optimizer.pt": 9})) == [
        "config.json",
        "pytorch_model.bin",
    ]


def test_a_repository_that_is_open_to_tokens_alone_is_told_from_one_that_is_open_to_all(
    start: Start, tmp_path: Path
) -> None:
    """By one request, which learning the commit has made already."""
    free, gated = start(), start(gated=("acme/tiny",), token=TOKEN)
    assert hub_at(free.url, tmp_path).closed("acme/tiny") == Known(value=False, how=free.url)
    hub = hub_at(gated.url, tmp_path, HF_TOKEN=TOKEN)
    hub.commit("acme/tiny")
    asked = [one for one in gated.requests if "/api/" in one[1]]
    assert hub.closed("acme/tiny") == Known(value=True, how=gated.url)
    assert [one for one in gated.requests if "/api/" in one[1]] == asked
    assert isinstance(hub_at(gated.url, tmp_path, HF_HUB_OFFLINE="1").closed("acme/tiny"), Unknown)
