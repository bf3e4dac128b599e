"""The fake engine as a process: it starts like vLLM, and dies like it."""

import os
import signal
import socket
import subprocess
import sys
import time
import urllib.request
from pathlib import Path

import pytest

ENGINE = Path(__file__).parents[1] / "fakes" / "engine.py"


def free_port():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


def start(*flags, **env):
    argv = [sys.executable, "-S", str(ENGINE), "--model", "/models/toy", *flags]
    return subprocess.Popen(
        argv, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
        env={**os.environ, "FAKE_ENGINE_START_S": "0.05", **env},
    )  # fmt: skip


def test_it_starts_with_the_phases_of_vllm_and_ends_on_sigterm():
    port = free_port()
    engine = start("--port", str(port), "--enforce-eager", "--max-model-len", "512", VLLM_API_KEY="sk-x")
    try:
        for _ in range(200):
            try:
                urllib.request.urlopen(f"http://127.0.0.1:{port}/health", timeout=1).close()
                break
            except OSError:
                time.sleep(0.02)
        with pytest.raises(urllib.error.HTTPError, match="401"):
            urllib.request.urlopen(f"http://127.0.0.1:{port}/v1/models", timeout=5)
    finally:
        engine.send_signal(signal.SIGTERM)
        out, err = engine.communicate(timeout=5)
    assert engine.returncode == 0
    for line in (
        "vLLM API server version", "Using max model len 512", "Starting to load model", "Loading weights took",
        "Model loading took", "CPU KV cache size", "init engine (profile", "Starting vLLM server on",
        "Application startup complete",
    ):  # fmt: skip
        assert line in out
    assert "Loading safetensors checkpoint shards: 100% Completed | 2/2" in err
    assert "sk-x" not in out + err


def test_it_dies_while_loading_with_the_cause_above_the_last_line():
    engine = start(FAKE_ENGINE_FAULT="die-load")
    _, err = engine.communicate(timeout=5)
    assert engine.returncode == 1
    assert "torch.OutOfMemoryError: CUDA out of memory" in err
    last = "Engine core initialization failed. See root cause above. Failed core proc(s): {'EngineCore_0': 1}"
    assert err.strip().splitlines()[-1].endswith(f"RuntimeError: {last}")


def test_it_leaves_with_a_code_and_no_word():
    engine = start("--fault", "exit-3")
    assert (*engine.communicate(timeout=5), engine.returncode) == ("", "", 3)
