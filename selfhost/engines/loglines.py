"""One line of a log as engines and container tools write it: without colours, bars and prefixes."""

import re

_ANSI = re.compile(r"\x1b\[[0-9;?]*[A-Za-z]|\x1b\][^\x07\x1b]*(?:\x07|\x1b\\)")
_BREAK = re.compile(r"\r\n|\n|\r")
_CLUSTER = re.compile(r"\s*\[repeated \d+x across cluster\]")
_PREFIXES = (
    re.compile(r"^[\w.-]{1,60}\s*\| "),  # docker compose: `vllm-1  | `
    re.compile(r"^\d{4}-\d\d-\d\d[T ][\d:.,]+(?:Z|[+-]\d\d:?\d\d)?\s+(?:stdout|stderr)?\s*(?:[FP] )?"),  # Kubernetes
    re.compile(r"^\w{3}\s+\d+ \d\d:\d\d:\d\d \S+ [\w.@-]+\[\d+\]: "),  # journald
    re.compile(r"^\((?:APIServer|EngineCore|Worker|VllmWorker|RayWorker|ServeReplica)[^)]{0,120}\) "),
    re.compile(r"^(?:DEBUG|INFO|WARNING|ERROR|CRITICAL) \d\d-\d\d \d\d:\d\d:\d\d \[?[\w/.]+(?:\.py)?(?::\d+)?\] ?"),
    re.compile(r"^\[\d{4}-\d\d-\d\d \d\d:\d\d:\d\d[^\]]{0,40}\] "),  # SGLang
)


def plain(text: str) -> str:
    """`text` without terminal colours."""
    return _ANSI.sub("", text) if "\x1b" in text else text


def lines(text: str) -> list[str]:
    """Complete and partial lines of `text`; a carriage return ends a line, as progress bars mean it."""
    return _BREAK.split(text)


def bare(line: str) -> str:
    """The message of a line without what was put in front of it; workers carry two process prefixes."""
    line = _CLUSTER.sub("", line)
    shortened = True
    while shortened:
        shortened = False
        for prefix in _PREFIXES:
            stripped = prefix.sub("", line, count=1)
            if stripped != line:
                line, shortened = stripped, True
    return line
