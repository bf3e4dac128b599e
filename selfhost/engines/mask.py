"""Secrets that engines print: blotted out before a line of a log is shown."""

import re

_BLOT = "***"
_WHOLE = re.compile(
    r"\b(?:hf_[A-Za-z0-9]{8,}|sk-[A-Za-z0-9_-]{8,}|gh[pousr]_[A-Za-z0-9]{16,}|github_pat_\w{16,}|nvapi-[\w-]{16,}"
    r"|glpat-[\w-]{16,}|xox[abprs]-[\w-]{8,}|AKIA[A-Z0-9]{16}|eyJ[\w-]{8,}\.[\w-]{8,}\.[\w-]*)"
)
_BEARER = re.compile(r"(?i)\b(bearer|basic)(\s+)[\w.~+/=-]{6,}")
_USERINFO = re.compile(r"(?<=://)[^/\s:@]{1,80}:[^/\s@]{1,200}(?=@)")
_NAMED = re.compile(
    r"(?i)(?P<name>--[a-z-]*(?:key|token|password|secret)(?=[\s=])"
    r"|(?<![A-Za-z0-9])(?:[a-z]+[_-])*(?:api[_-]?key|secret(?:[_-]access)?(?:[_-]key)?|password|passwd)(?=[\"'\s:=])"
    r"|(?<![A-Za-z0-9_-])(?:hf[_-]|access[_-]|auth[_-]|hugging_?face_?(?:hub_)?)?token(?=[\"'\s:=]))"
    r"(?P<link>[\"']?\s*[:=]\s*|(?<=key)\s+|(?<=token)\s+|(?<=password)\s+|(?<=secret)\s+)"
    r"(?P<open>\[?[\"']?)(?P<value>[^\s\"',})\]]{4,})"
)
_NOT_SECRET = {"none", "null", "true", "false", _BLOT}


def mask(text: str) -> str:
    """`text` with keys, tokens and passwords replaced by `***`."""
    text = _USERINFO.sub(_BLOT, _BEARER.sub(rf"\1\2{_BLOT}", _WHOLE.sub(_BLOT, text)))
    return _NAMED.sub(_blotted, text)


def _blotted(match: re.Match[str]) -> str:
    spoken = match["link"].isspace() and not match["name"].startswith("--")  # words, such as "the token limit"
    if spoken or match["value"].lower() in _NOT_SECRET:
        return match[0]
    return f"{match['name']}{match['link']}{match['open']}{_BLOT}"
