"""Keys, tokens and passwords never leave a text through us."""

import pytest

from selfhost.core.redact import has_token, is_secret, mask, without_login


@pytest.mark.parametrize(
    "text",
    [
        "HF_TOKEN=hf_SECRETsecret1234",
        "--api-key SECRETsecret",
        "--api-key=SECRETsecret",
        "'api_key': ['SECRETsecret']",
        "ServerArgs(api_key='SECRETsecret', admin_api_key='SECRETsecret')",
        '"apiKey": "SECRETsecret"',
        "Authorization: Bearer SECRETsecret",
        "Authorization: Token SECRETsecret",
        "authorization=SECRETsecret",
        "{'Authorization': 'SECRETsecret'}",
        "Proxy-Authorization: Basic U0VDUkVUSECRET==",
        "OPENAI_API_KEY=SECRETsecret",
        "VLLM_API_KEY: SECRETsecret",
        "https://user:SECRETsecret@proxy.example:3128/",
        "https://user:SECRET@secret@proxy.example:3128/",
        "Looking in indexes: https://SECRETsecret@index.example/simple",
        "HTTPS_PROXY=user:SECRETsecret@proxy.example:3128",
        "password=SECRETsecret",
        "--hf-token SECRETsecret",
        "aws_secret_access_key = SECRETsecret",
        "sk-SECRETsecret",
        "token=SECRETsecret",
        "eyJhbGciOiJIUzI1NiJ9.eyJSECRETsecret.SECRETsecret",
    ],
)
def test_a_secret_is_blotted_out(text: str) -> None:
    assert "SECRET" not in mask(text)
    assert "***" in mask(text)


@pytest.mark.parametrize(
    "text",
    [
        "To serve at least one request with the model's max seq len (40960), 5.63 GiB KV cache is needed",
        "max_num_batched_tokens=2048, tokenizer='/models/x', num_tokens: 12345",
        "hf_token=None, api_key=None",
        "KeyError: 'layers.0.mlp.experts.w13_bias'",
        "the tokenizer token limit of 4096 was reached",
        "a, file:///wheels, b@c.example",
        "http://127.0.0.1:8000/v1?mail=a@b.example",
        "docker.io/vllm/vllm-openai:v0.33.0@sha256:0123abcd",
        "HTTPS_PROXY=http://proxy.example:3128",
        "sk-learn",
    ],
)
def test_ordinary_words_stay(text: str) -> None:
    assert mask(text) == text


def test_what_was_masked_stays_as_it_is() -> None:
    once = mask("Authorization: Bearer abcdefgh, --api-key abcdefgh https://a:b@c/ HF_TOKEN=hf_abcdefghijkl")
    assert once == "Authorization: Bearer ***, --api-key *** https://***@c/ HF_TOKEN=***"
    assert mask(once) == once


def test_an_address_loses_its_login_and_nothing_else() -> None:
    assert without_login("http://ana:geheim@proxy.example:3128") == "http://proxy.example:3128"
    assert without_login("ana:ge@heim@proxy.example:3128") == "proxy.example:3128"
    assert without_login("socks5://proxy.example") == "socks5://proxy.example"
    assert without_login("") == ""


def test_only_a_long_word_is_surely_a_token() -> None:
    assert has_token("--model hf_abcdefghijklmnopqrstuv")
    assert has_token("x=sk-abcdefgh12345678")
    assert not has_token("sk-learn-small")
    assert not has_token("task-abcdefghijklmnopqrstuv")


@pytest.mark.parametrize("variable", ["HF_TOKEN", "OPENAI_API_KEY", "AWS_ACCESS_KEY_ID", "PGPASSWORD", "hf_token"])
def test_a_variable_is_secret_by_its_name(variable: str) -> None:
    assert is_secret(variable)


@pytest.mark.parametrize("variable", ["PATH", "HF_HOME", "SSH_AUTH_SOCK", "KEYBOARD", "TOKENIZERS_PARALLELISM"])
def test_an_ordinary_variable_is_not(variable: str) -> None:
    assert not is_secret(variable)
