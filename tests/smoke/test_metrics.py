from selfhost.smoke.metrics import GENERATED, PROMPT, RUNNING, total

# Lines of vLLM 0.33.0's /metrics with two data-parallel engines, and of SGLang's.
VLLM = """\
# TYPE vllm:prompt_tokens_total counter
vllm:prompt_tokens_total{engine="0",model_name="toy"} 1200.0
vllm:prompt_tokens_total{engine="1",model_name="toy"} 34.0
vllm:prompt_tokens_created{engine="0",model_name="toy"} 1.7e+09
vllm:generation_tokens_total{engine="0",model_name="toy"} 1.5e+06
vllm:num_requests_running{engine="0",model_name="toy"} 2.0
"""
SGLANG = 'sglang:prompt_tokens_total{model_name="toy"} 7.0\nsglang:num_running_reqs{model_name="toy"} 0.0\n'


def test_counters_are_summed_over_engines_and_known_by_either_name():
    assert (total(VLLM, PROMPT), total(VLLM, GENERATED), total(VLLM, RUNNING)) == (1234, 1_500_000, 2)
    assert (total(SGLANG, PROMPT), total(SGLANG, GENERATED), total(SGLANG, RUNNING)) == (7, None, 0)
    assert total("", PROMPT) is None
