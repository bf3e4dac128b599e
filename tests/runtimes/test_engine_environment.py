import pytest

from selfhost.core.redact import is_secret
from selfhost.runtimes.environment import engine_environment


@pytest.mark.parametrize(
    "variable",
    [
        *("HF_TOKEN", "HUGGING_FACE_HUB_TOKEN", "HUGGINGFACEHUB_API_TOKEN", "HF_API_TOKEN", "MODELSCOPE_API_TOKEN"),
        *("OPENAI_API_KEY", "VLLM_API_KEY", "WANDB_API_KEY", "GITHUB_TOKEN", "AWS_SECRET_ACCESS_KEY", "hf_token"),
        *("AWS_ACCESS_KEY_ID", "AWS_SESSION_TOKEN", "GOOGLE_APPLICATION_CREDENTIALS", "PGPASSWORD", "DB_PASSWD"),
    ],
)
def test_what_is_named_like_a_secret_is_none_of_the_engines_business(variable: str) -> None:
    assert is_secret(variable)
    assert variable not in engine_environment({variable: "x"})


@pytest.mark.parametrize(
    "variable",
    [
        *("PATH", "HOME", "LANG", "HF_HOME", "HF_HUB_OFFLINE", "TOKENIZERS_PARALLELISM", "LD_LIBRARY_PATH", "TMPDIR"),
        *("CUDA_HOME", "OMP_NUM_THREADS", "VLLM_CACHE_ROOT", "SSH_AUTH_SOCK", "KEYBOARD", "XDG_CACHE_HOME"),
    ],
)
def test_what_an_engine_may_need_stays(variable: str) -> None:
    assert engine_environment({variable: "x"})[variable] == "x"


@pytest.mark.parametrize(
    "variable", ["PYTHONPATH", "PYTHONHOME", "VIRTUAL_ENV", "https_proxy", "HTTPS_PROXY", "all_proxy"]
)
def test_another_python_and_proxies_do_not_reach_it(variable: str) -> None:
    assert variable not in engine_environment({variable: "x"})


def test_the_token_in_the_hubs_own_file_is_not_sent_either() -> None:
    assert engine_environment({})["HF_HUB_DISABLE_IMPLICIT_TOKEN"] == "1"
