"""A running process as /proc shows it."""

from selfhost.visibility.readers.procfs import read, split


def test_strings_end_in_nul() -> None:
    assert split("vllm\0serve\0\0--x\0") == ("vllm", "serve", "", "--x")
    assert split("") == ()


def test_only_variables_that_select_devices_are_kept_and_secrets_never() -> None:
    token = "hf_" + "x9" * 16
    argv = ("vllm", "serve", "m", "--api-key", "s3cret", f"--hf-token={token}", token, "--port", "1")
    environ = ("HF_TOKEN=x", "CUDA_VISIBLE_DEVICES=1", "PATH=/bin", "SLURM_JOB_ID=7", "broken", "HOME=/h")
    found = read(argv, environ, pid=12)
    assert found.argv == ("vllm", "serve", "m", "--api-key", "***", "--hf-token=***", "***", "--port", "1")
    assert found.env == {"CUDA_VISIBLE_DEVICES": "1", "SLURM_JOB_ID": "7"}
    assert found.name == "pid 12"
