"""What a secret looks like, in a text and by the name of a variable; every secret is blotted out by this. Pure."""

import re

BLOT = "***"
SURE_LENGTH = 19
"""A shorter word that begins like a token may be a name, such as `sk-learn`: blotted out in a log, but no finding."""

# Beginnings that their makers chose so that tokens are recognised: huggingface.co/docs/hub/security-tokens,
# github.blog/2021-04-05-behind-githubs-new-authentication-token-formats, docs.gitlab.com/security/tokens,
# api.slack.com/authentication/token-types, docs.aws.amazon.com/IAM (unique identifiers), jwt.io (base64 of `{"`).
_TOKEN = re.compile(
    r"\b(?:hf_[A-Za-z0-9]{8,}|sk-[A-Za-z0-9_-]{8,}|gh[pousr]_[A-Za-z0-9]{16,}|github_pat_\w{16,}|nvapi-[\w-]{16,}"
    r"|glpat-[\w-]{16,}|xox[abprs]-[\w-]{8,}|AKIA[A-Z0-9]{16}|eyJ[\w-]{8,}\.[\w-]{8,}\.[\w-]*)"
)
_BEARER = re.compile(r"(?i)\b(bearer|basic)(\s+)[\w.~+/=-]{6,}")
_AUTHORIZATION = re.compile(
    r"(?i)\b(?P<name>authorization[\"']?\s*[:=]\s*[\"']?)(?!bearer\b|basic\b)(?P<scheme>[a-z]+\s+)?[^\s\"',})\]*]{4,}"
)
_LOGIN = re.compile(r"(?<=://)[^/\s'\"?#]{1,300}(?=@)")
"""In an address (RFC 3986, userinfo); a token may stand there alone, as package indexes accept it."""
_PROXY_LOGIN = re.compile(r"(?i)(?P<name>proxy[\"']?\s*[:=]\s*[\"']?)(?!\w+://)[^/\s'\"?#]{1,300}(?=@)")
"""A proxy may be named without a scheme."""
_NAMED = re.compile(
    r"(?i)(?P<name>--[a-z-]*(?:key|token|password|secret)(?=[\s=])"
    r"|(?<![A-Za-z0-9])(?:[a-z]+[_-])*(?:api[_-]?key|secret(?:[_-]access)?(?:[_-]key)?|password|passwd)(?=[\"'\s:=])"
    r"|(?<![A-Za-z0-9_-])(?:hf[_-]|access[_-]|auth[_-]|hugging_?face_?(?:hub_)?)?token(?=[\"'\s:=]))"
    r"(?P<link>[\"']?\s*[:=]\s*|(?<=key)\s+|(?<=token)\s+|(?<=password)\s+|(?<=secret)\s+)"
    r"(?P<open>\[?[\"']?)(?P<value>[^\s\"',})\]]{4,})"
)
_NOT_SECRET = {"none", "null", "true", "false", BLOT}

_SECRET_NAME = re.compile(
    r"""
    ^(HF|HUGGING_?FACE|HUGGINGFACEHUB)_.*TOKEN$   # HF_TOKEN, HUGGING_FACE_HUB_TOKEN (huggingface_hub), HF_API_TOKEN
    | TOKEN$ | _API_KEY$ | _APIKEY$               # MODELSCOPE_API_TOKEN, OPENAI_API_KEY, VLLM_API_KEY of the shell
    | SECRET | PASSWORD | PASSWD | CREDENTIALS    # AWS_SECRET_ACCESS_KEY, GOOGLE_APPLICATION_CREDENTIALS
    | _ACCESS_KEY(_ID)?$ | _AUTH$ | ^NETRC$       # AWS_ACCESS_KEY_ID, REDIS_AUTH
    """,
    re.VERBOSE | re.IGNORECASE,
)


def mask(text: str) -> str:
    """`text` with keys, tokens, passwords and the logins of addresses replaced by `***`."""
    text = _BEARER.sub(rf"\1\2{BLOT}", _TOKEN.sub(BLOT, text))
    text = _AUTHORIZATION.sub(lambda match: f"{match['name']}{match['scheme'] or ''}{BLOT}", text)
    text = _PROXY_LOGIN.sub(rf"\g<name>{BLOT}", _LOGIN.sub(BLOT, text))
    return _NAMED.sub(_blotted, text)


def has_token(text: str) -> bool:
    """Whether a token stands in `text` that is recognised by itself, without a name before it."""
    return any(len(match[0]) >= SURE_LENGTH for match in _TOKEN.finditer(text))


def without_login(address: str) -> str:
    """An address without its user and password; unlike `mask` also one without a scheme."""
    scheme, found, rest = address.rpartition("://")
    return f"{scheme}{found}{rest.rpartition('@')[2]}"


def is_secret(variable: str) -> bool:
    """By its name; a value is never looked at."""
    return _SECRET_NAME.search(variable) is not None


def _blotted(match: re.Match[str]) -> str:
    spoken = match["link"].isspace() and not match["name"].startswith("--")  # words, such as "the token limit"
    if spoken or match["value"].lower() in _NOT_SECRET:
        return match[0]
    return f"{match['name']}{match['link']}{match['open']}{BLOT}"
