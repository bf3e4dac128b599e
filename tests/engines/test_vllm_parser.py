"""Every argument that selfhost writes is accepted by the engine's own parser."""

import json
import subprocess

import pytest

from selfhost.engines import vllm
from tests.engines.launches import CARD, SWITCHED_OFF, launch

LAUNCHES = (
    launch(),
    launch(weights_precision="fp8", kv_precision="fp8", cores=4.0),
    launch(weights_precision="fp32", kv_precision="bf16"),
    launch(weights_precision="fp8_per_tensor", kv_precision="fp8_e4m3"),
    launch(reasoning=SWITCHED_OFF, tool_parser="hermes", trust_remote_code=True),
    launch(**CARD),
    launch(**{**CARD, "devices": ("GPU-a", "GPU-b")}, weights_precision="checkpoint"),
    launch(extra=("--no-enforce-eager", "--max-model-len=8k", "-q", "fp8_per_channel")),
    launch(extra=("-O2", "--gpu-memory-utilization", "0.5", "--default-chat-template-kwargs.enable_thinking", "true")),
    launch(extra=("--no-enable-auto-tool-choice", "--kv-cache-dtype", "auto"), tool_parser="hermes"),
)

SCRIPT = """
import json, sys
import vllm.envs
from vllm.entrypoints.launchers.cli_args import make_arg_parser
from vllm.model_executor.layers.quantization import QUANTIZATION_METHODS
from vllm.utils.argparse_utils import FlexibleArgumentParser
parser = make_arg_parser(FlexibleArgumentParser())
parsed = [vars(parser.parse_args(argv)) for argv in json.load(sys.stdin)]
print(json.dumps({"parsed": parsed, "methods": QUANTIZATION_METHODS,
                  "variables": sorted(vllm.envs.environment_variables)}, default=str))
"""


@pytest.mark.vllm
def test_the_real_parser_understands_every_launch_as_it_was_meant(parser_python: str) -> None:
    done = subprocess.run(
        [parser_python, "-W", "ignore", "-c", SCRIPT],
        input=json.dumps([vllm.argv(each) for each in LAUNCHES]),
        capture_output=True,
        text=True,
        timeout=240,
        check=False,
    )
    assert done.returncode == 0, done.stderr[-2000:]
    answer = json.loads(done.stdout.splitlines()[-1])
    for each, parsed in zip(LAUNCHES, answer["parsed"], strict=True):
        assert parsed["host"] == each.address
        assert parsed["port"] == each.port
        assert parsed["model"] == each.model_path
        assert parsed["served_model_name"] == [each.served_name]
        assert parsed["max_num_seqs"] == each.concurrency
        assert parsed["quantization"] in (None, *answer["methods"])
        assert parsed["api_key"] is None
    eager = [parsed["enforce_eager"] for parsed in answer["parsed"]]
    assert eager == [True, True, True, True, True, False, False, False, False, True]
    assert answer["parsed"][0]["kv_cache_memory_bytes"] == 500_000_000
    assert answer["parsed"][4]["default_chat_template_kwargs"] == {"enable_thinking": False, "thinking": False}
    assert answer["parsed"][7]["max_model_len"] == 8000
    assert answer["parsed"][8]["default_chat_template_kwargs"] == {"enable_thinking": True}
    emitted = {name for each in LAUNCHES for name in vllm.env(each) if name.startswith("VLLM_")} | {vllm.KEY_VARIABLE}
    assert emitted <= set(answer["variables"])
