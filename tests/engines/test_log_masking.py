"""Keys and tokens never leave a log through us."""

import pytest

from selfhost.engines.mask import mask


@pytest.mark.parametrize(
    "text",
    [
        "HF_TOKEN=hf_SECRETsecret1234",
        "--api-key SECRETsecret",
        "--api-key=SECRETsecret",
        "'api_key': ['SECRETsecret']",
        "api_key='SECRETsecret'",
        "ServerArgs(api_key='SECRETsecret', admin_api_key='SECRETsecret')",
        '"apiKey": "SECRETsecret"',
        "Authorization: Bearer SECRETsecret",
        "OPENAI_API_KEY=SECRETsecret",
        "VLLM_API_KEY: SECRETsecret",
        "https://user:SECRETsecret@proxy.example:3128/",
        "password=SECRETsecret",
        "hf_token: SECRETsecret",
        "--hf-token SECRETsecret",
        "aws_secret_access_key = SECRETsecret",
        "sk-SECRETsecret",
        "token=SECRETsecret",
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
    ],
)
def test_ordinary_words_stay(text: str) -> None:
    assert mask(text) == text
