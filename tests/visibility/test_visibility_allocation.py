"""What a text grants, what an engine spreads over, and how much of it: from the text to numbers."""

import pytest

from selfhost.shapes.finding import Finding, Severity
from selfhost.shapes.host import Host, Vendor
from selfhost.shapes.workload import CdiName, Form, PodFacts, Workload
from selfhost.visibility.allocation import granted, is_mig
from selfhost.visibility.engine_size import memory_share, ranks
from selfhost.visibility.files import NO_FILES
from selfhost.visibility.lint import lint_all
from selfhost.visibility.sources import read_source
from tests.fakes.machines import HOSTS, TWO

IMAGE = "vllm/vllm-openai:v0.31.0"


def run(options: str, tail: str = "--model m", *, image: str = IMAGE) -> Workload:
    return read_source(f"docker run -d {options} {image} {tail}\n", path="run.sh", files=NO_FILES)[0]


def said(workload: Workload, number: str, host: Host | None) -> list[Finding]:
    return [finding for finding in lint_all((workload,), host) if finding.id == number]


@pytest.mark.parametrize(
    ("options", "count", "everything", "ids"),
    [
        ("--gpus all", None, True, ()),
        ("--gpus 2", 2, False, ()),
        ("--gpus '\"device=2,3\"'", 2, False, ("2", "3")),
        ("--device nvidia.com/gpu=all", None, True, ()),
        ("--device nvidia.com/gpu=0 --device nvidia.com/gpu=1", 2, False, ("0", "1")),
        ("--runtime nvidia -e NVIDIA_VISIBLE_DEVICES=0,1", 2, False, ("0", "1")),
        ("--runtime nvidia", None, True, ()),
        ("--device /dev/nvidia0 --device /dev/nvidia3 --device /dev/nvidiactl", 2, False, ()),
        ("--gpus 1 -e NVIDIA_VISIBLE_DEVICES=all", 1, False, ()),
    ],
)
def test_a_run_line_grants(options: str, count: int | None, everything: bool, ids: tuple[str, ...]) -> None:
    grant = granted(run(options), None, Vendor.NVIDIA)
    assert grant is not None
    assert (grant.count, grant.everything, grant.ids) == (count, everything, ids)


@pytest.mark.parametrize("options", ["", "--runtime nvidia -e NVIDIA_VISIBLE_DEVICES=void", '--gpus "$WANTED"'])
def test_what_grants_nothing_or_is_not_known_is_no_grant(options: str) -> None:
    assert granted(run(options), None, Vendor.NVIDIA) is None


def test_all_of_a_known_machine_is_its_number_of_cards() -> None:
    grant = granted(run("--gpus all"), HOSTS["four-nvidia"], Vendor.NVIDIA)
    assert grant is not None
    assert grant.count == 4


def test_all_of_a_card_in_mig_mode_is_no_number() -> None:
    grant = granted(run("--gpus all"), HOSTS["mig"], Vendor.NVIDIA)
    assert grant is not None
    assert grant.count is None


def test_every_card_by_name_is_all_of_them() -> None:
    grant = granted(run("--gpus '\"device=0,1\"'"), HOSTS["two-nvidia"], Vendor.NVIDIA)
    assert grant is not None
    assert grant.everything


def test_amd_nodes_are_counted_by_render_node() -> None:
    options = "--device /dev/kfd --device /dev/dri/renderD128 --device /dev/dri/renderD129 --device /dev/dri/card1"
    grant = granted(run(options, image="vllm/vllm-openai-rocm:v0.31.0"), None, Vendor.AMD)
    assert grant is not None
    assert grant.count == 2


def test_a_pod_is_granted_what_it_asks_for_and_not_hamis_shares() -> None:
    pod = PodFacts(kind="Pod", name="llm", limits={"nvidia.com/gpu": "2", "nvidia.com/gpumem": "20000"})
    grant = granted(Workload(name="vllm", argv=(), form=Form.POD, pod=pod), None, Vendor.NVIDIA)
    assert grant is not None
    assert grant.count == 2


@pytest.mark.parametrize(
    ("name", "slice_"), [("MIG-1b1c2d3e", True), ("0:1", True), ("mig1:0", True), ("0", False), ("GPU-1b1c2d3e", False)]
)
def test_a_slice_is_known_by_its_name(name: str, slice_: bool) -> None:
    assert is_mig(name) is slice_


@pytest.mark.parametrize(
    ("tail", "count", "exact"),
    [
        ("--model m", 1, True),
        ("--model m --tensor-parallel-size=2 -pp 2", 4, True),
        ("--model m -tp 2 -dp 4 -dpl 2", 4, True),
        ("--model m -tp $TP", 1, False),
        ("--model m --config /etc/vllm.yaml", 1, False),
        ("--model m $EXTRA", 1, False),
        ("bash", 1, False),
    ],
)
def test_vllm_spreads_over_the_product_of_its_sizes(tail: str, count: int, exact: bool) -> None:
    size = ranks(run("--gpus all", tail))
    assert size is not None
    assert (size.count, size.exact) == (count, exact)


def test_attention_of_sglang_shares_the_devices_of_its_tensor_parallel_ranks() -> None:
    tail = "python3 -m sglang.launch_server --model-path m --tp 8 --dp 8 --enable-dp-attention"
    size = ranks(run("--gpus all", tail, image="lmsysorg/sglang:v0.5.9"))
    assert size is not None
    assert size.count == 8


@pytest.mark.parametrize(
    "tail", ["-tp 16 --nnodes 2", "-tp 16 --distributed-executor-backend ray", "-dp 16 --headless"]
)
def test_an_engine_over_several_machines_is_not_measured_by_one(tail: str) -> None:
    assert ranks(run("--gpus all", tail)) is None


def test_a_share_is_the_engines_own_word_or_vllms_least_default() -> None:
    assert memory_share(run("--gpus all")) == 0.9
    assert memory_share(run("--gpus all", "--gpu-memory-utilization 0.45")) == 0.45
    assert memory_share(run("--gpus all", "--kv-cache-memory-bytes 8G")) is None
    assert memory_share(run("--gpus all", "--model-path m", image="lmsysorg/sglang:v0.5.9")) is None


@pytest.mark.parametrize(
    ("number", "options", "host", "severity"),
    [
        ("DV014", "--gpus 0", None, Severity.WARNING),
        ("DV014", "--gpus 0", "docker-28", Severity.ERROR),
        ("DV030", f"--privileged --gpus device={'GPU-6f1e2d3c'}", None, Severity.WARNING),
        ("DV030", f"--privileged --gpus device={TWO[0].uuid}", "two-nvidia", Severity.WARNING),
        ("DV030", f"--privileged --gpus device={TWO[1].uuid}", "two-nvidia", Severity.ERROR),
        ("DV030", "--privileged --gpus 1", "two-nvidia", Severity.WARNING),
        ("DV023", "--gpus 2", None, Severity.WARNING),
        ("DV007", "--gpus all -e CUDA_VISIBLE_DEVICES=GPU-6f1e2d3c", None, Severity.WARNING),
    ],
)
def test_a_rule_says_more_where_more_is_known(number: str, options: str, host: str | None, severity: Severity) -> None:
    assert [finding.severity for finding in said(run(options), number, HOSTS[host] if host else None)] == [severity]


def test_a_correction_is_written_in_the_form_of_the_file() -> None:
    cdi = (CdiName(kind="nvidia.com/gpu", name="1"),)
    quadlet = Workload(name="vllm", argv=(), form=Form.QUADLET, path="vllm.container", image=IMAGE, cdi=cdi)
    compose = Workload(name="vllm", argv=(), form=Form.COMPOSE, path="compose.yaml", image=IMAGE, cdi=cdi)
    texts = [said(workload, "DV017", HOSTS["two-nvidia"])[0].fix[0] for workload in (quadlet, compose)]
    uuid = "GPU-6f1e2d3c-0000-0000-0000-000000000001"
    assert f"AddDevice=nvidia.com/gpu={uuid}" in texts[0]
    assert f'device_ids: ["{uuid}"]' in texts[1]
