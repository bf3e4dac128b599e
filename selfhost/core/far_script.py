"""Questions to a far machine as shell scripts for `sh` (dash, BusyBox, bash), and what their answers mean. Pure."""

import errno
import os
import posixpath
import re
import shlex
from collections.abc import Mapping, Sequence

from selfhost.core.far_errors import error_of
from selfhost.core.far_shell import Reply
from selfhost.core.system import Node, NodeKind

_KINDS: Mapping[str, NodeKind] = {"c": "c", "b": "b", "d": "d", "-": "f", "l": "l"}
_KIND_BITS: Mapping[int, NodeKind] = {0o020: "c", 0o060: "b", 0o040: "d", 0o100: "f", 0o120: "l"}
_RIGHTS = "rwxrwxrwx"


def read(path: str) -> str:
    return f"cat {shlex.quote(path)} </dev/null"


def listing(path: str) -> str:
    """Names, one a line, by the shell's own globbing: `ls` may be missing."""
    place = shlex.quote(path.rstrip("/"))
    return (
        f"( cd {place}/ && [ -r . ] || {{ [ -d {place}/ ] && echo 'Permission denied' >&2; exit 1; }}\n"
        'for n in * .[!.]* ..?*; do if [ -e "$n" ] || [ -L "$n" ]; then printf \'%s\\n\' "$n"; fi; done; : )'
    )


def status(path: str) -> str:
    """`stat` where there is one, else `ls -n`, else only whether it is there."""
    place = shlex.quote(path)
    return (
        f"if command -v stat >/dev/null 2>&1; then stat -L -c '%f %u %g %s %t %T' {place} </dev/null\n"
        f"elif command -v ls >/dev/null 2>&1; then ls -lnLd {place} </dev/null\n"
        f"elif [ -e {place} ]; then ( exit 3 ); else echo 'No such file or directory' >&2; ( exit 1 ); fi"
    )


def node(reply: Reply, path: str) -> Node:
    """Raises OSError: what was refused or missing, or ENOSYS where no tool can tell."""
    if reply.rc == 3:
        raise OSError(errno.ENOSYS, "neither stat nor ls is there to ask", path)
    if reply.rc != 0:
        raise error_of(reply.stderr, path)
    words = reply.stdout.split()
    try:
        return _by_stat(words) if re.fullmatch(r"[0-9a-f]+", words[0]) else _by_ls(words)
    except (IndexError, ValueError, KeyError) as error:
        raise OSError(errno.EIO, f"stat answered {reply.stdout.strip()[:80]!r}", path) from error


def _by_stat(words: Sequence[str]) -> Node:
    bits = int(words[0], 16)
    return Node(
        kind=_KIND_BITS.get(bits >> 9 & 0o170, "other"),
        mode=bits & 0o7777,
        uid=int(words[1]),
        gid=int(words[2]),
        size=int(words[3]),
        major=int(words[4], 16),
        minor=int(words[5], 16),
    )


def _by_ls(words: Sequence[str]) -> Node:
    """`crw-rw-rw- 1 0 44 195, 0 …`; a device's numbers stand where a file has its size."""
    shape, _, uid, gid, size, *rest = words
    mode = sum(
        0o400 >> at for at, (seen, right) in enumerate(zip(shape[1:10], _RIGHTS, strict=True)) if seen in right + "st"
    )
    is_device = size.endswith(",")
    return Node(
        kind=_KINDS.get(shape[0], "other"),
        mode=mode,
        uid=int(uid),
        gid=int(gid),
        size=0 if is_device else int(size),
        major=int(size[:-1]) if is_device else 0,
        minor=int(rest[0]) if is_device else 0,
    )


def link(path: str) -> str:
    """`readlink` where there is one, else what `ls -l` shows behind the arrow."""
    place = shlex.quote(path)
    return (
        f"if [ ! -L {place} ]; then if [ -e {place} ]; then echo 'Invalid argument' >&2; else"
        f" cat {place} </dev/null >/dev/null; fi; ( exit 1 )\n"
        f"elif command -v readlink >/dev/null 2>&1; then readlink {place} </dev/null\n"
        f"else ls -ld {place} </dev/null; fi"
    )


def target(reply: Reply, path: str) -> str:
    if reply.rc != 0:
        raise error_of(reply.stderr or "No such file or directory", path)
    return reply.stdout.rstrip("\n").rpartition(f"{path} -> ")[2]


def opening(path: str) -> str:
    """Open for reading and writing. `<>` creates what is missing, so only what is there is opened."""
    place = shlex.quote(path)
    return (
        f"if [ -d {place} ]; then echo 'Is a directory' >&2; ( exit 1 )\n"
        f"elif [ ! -e {place} ]; then cat {place} </dev/null >/dev/null; ( exit 1 )\n"
        f"else ( : 3<> {place} ); fi"
    )


def opened(reply: Reply, path: str) -> str:
    if reply.rc == 0:
        return "ok"
    number = error_of(reply.stderr or "No such file or directory", path).errno
    return errno.errorcode.get(number or 0, "EIO")


def space(path: str) -> str:
    """Of `path` or its nearest parent that is there."""
    climb: list[str] = [path]
    while climb[-1] not in ("/", ""):
        climb.append(posixpath.dirname(climb[-1]))
    places = " ".join(shlex.quote(place) for place in climb)
    return f'for p in {places}; do if [ -e "$p" ]; then df -P -k "$p" </dev/null; break; fi; done'


def bytes_of(reply: Reply, path: str) -> tuple[int, int]:
    """Total and free, out of POSIX `df` (in units of 1024)."""
    fields = re.findall(r"\s(\d+)\s+(\d+)\s+(-?\d+)\s+\S+%?\s+/", reply.stdout)
    if not fields:
        raise OSError(errno.ENOSYS, reply.stderr.strip()[-120:] or os.strerror(errno.ENOSYS), path)
    total, _, free = fields[-1]
    return int(total) * 1024, max(0, int(free)) * 1024


def command(argv: Sequence[str], env: Mapping[str, str] | None, stdin: str) -> str:
    """In the background, so that its process id is known before it hangs; 127 with a note when it is not installed."""
    given = "".join(f"{name}={shlex.quote(value)} " for name, value in (env or {}).items() if name.isidentifier())
    feed, body = (
        ("<<'selfhost-input'", f"{stdin.removesuffix(chr(10))}\nselfhost-input\n") if stdin else ("</dev/null", "")
    )
    return (
        f"if command -v {shlex.quote(argv[0])} >/dev/null 2>&1; then\n"
        f"{given}{shlex.join(argv)} {feed} &\n{body}"
        f"printf '{_PID}%s\\n' $! >&2; wait $!\nelse echo {MISSING} >&2; ( exit 127 ); fi"
    )


MISSING = "selfhost-not-installed"
_PID = "selfhost-pid "


def without_pid(stderr: str) -> tuple[str, str]:
    """The number of the command that was started, and what it said itself."""
    found = re.search(rf"{_PID}(\d+)\n", stderr)
    return (found[1], stderr[: found.start()] + stderr[found.end() :]) if found else ("", stderr)


# Names alone: `export -p` of dash and BusyBox writes a line for each, and only the far side sees what follows the name.
VARIABLES = """export -p | while read -r word name; do
case $word in export|declare) ;; *) continue;; esac
name=${name#-x }; name=${name%%=*}
case $name in *[!A-Za-z0-9_]*|'') ;; *) printf '%s\\n' "$name";; esac; done"""


def variable(name: str) -> str:
    """Fails when it is not set."""
    return f'if [ -n "${{{name}+set}}" ]; then printf %s "${name}"; else ( exit 1 ); fi'


def values(names: Sequence[str]) -> str:
    """One after another, parted by NUL."""
    return "printf '%s\\0' " + " ".join(f'"${name}"' for name in names)


# What the loader's cache names; without one (musl, a bare image) what lies where loaders look: hier(7), ld.so(8).
LIBRARIES = """if command -v ldconfig >/dev/null 2>&1 && ldconfig -p </dev/null >/dev/null 2>&1; then
ldconfig -p </dev/null | while read -r name rest; do case $name in *.so*) printf '%s\\n' "$name";; esac; done
else for f in /lib/*.so* /lib64/*.so* /lib/*-linux-gnu/*.so* /usr/lib/*.so* /usr/lib64/*.so* \\
/usr/lib/*-linux-gnu/*.so* /usr/local/lib/*.so* \\
/usr/lib/wsl/lib/*.so*; do [ -e "$f" ] && printf '%s\\n' "${f##*/}"; done; fi"""
