"""Secrets where other users can read them."""

from collections.abc import Iterator

from selfhost.core.redact import has_token
from selfhost.shapes.finding import Place, Severity
from selfhost.shapes.host import Host
from selfhost.shapes.workload import Workload
from selfhost.visibility.rule import Found, rule

SOURCE = "https://man7.org/linux/man-pages/man5/proc_pid_cmdline.5.html"
_FLAGS = ("--api-key", "--admin-api-key", "--hf-token", "--ssl-keyfile-password")


@rule("DV090", Severity.ERROR, source=SOURCE)
def secret_on_the_command_line(workload: Workload, host: Host | None) -> Iterator[Found]:
    """The value itself is never repeated."""
    del host
    for at, word in enumerate(workload.argv):
        flag, equals, value = word.partition("=")
        flag = flag.replace("_", "-")
        given = value if equals else "".join(workload.argv[at + 1 : at + 2])
        named = flag in _FLAGS and bool(given) and not given.startswith("-")
        if named or (has_token(word) and not _follows_flag(workload.argv, at)):
            yield Found(
                title=f"`{flag}` puts a secret on the command line" if named else "a token stands on the command line",
                place=Place(path=workload.path, object=workload.name),
                evidence=f"{flag} ***" if named else "***",
                why="Every user of this machine can read the arguments of every process (`ps`), and so do logs.",
                fix=("take it out and hand it over in the environment, read from a file: VLLM_API_KEY for vLLM",),
            )


def _follows_flag(argv: tuple[str, ...], at: int) -> bool:
    return at > 0 and argv[at - 1].replace("_", "-") in _FLAGS
