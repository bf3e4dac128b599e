"""What `lint` says of its targets, and with which exit code."""

from collections.abc import Collection, Sequence
from typing import TYPE_CHECKING

from selfhost.cli._findings import Verdict
from selfhost.core.errors import InputError
from selfhost.core.system import System
from selfhost.shapes.exit import ExitCode
from selfhost.shapes.finding import Finding, Severity
from selfhost.shapes.host import Host

if TYPE_CHECKING:
    from selfhost.visibility.project import Judged


def judged(
    targets: Sequence[str],
    *,
    host: Host | None,
    ignore: Collection[str],
    strict: bool,
    pid: int | None,
    system: System,
) -> tuple[Verdict, ExitCode]:
    """Raises InputError when only one text was named and it cannot be read."""
    from selfhost.cli._lint_files import beside, gather
    from selfhost.visibility.lint import rule_count
    from selfhost.visibility.project import as_finding, judge

    if pid is not None:
        return _of_process(pid, host=host, ignore=ignore, strict=strict, system=system)
    texts = gather(targets)
    seen = judge(texts.sources, host=host, beside=beside, ignore=ignore)
    refused = tuple(as_finding(error, error.place.path if error.place else "") for error in texts.refused)
    wrong = (*texts.refused, *seen.broken)
    if not seen.read and len(wrong) == 1:
        raise wrong[0]
    findings = tuple(sorted((*seen.findings, *refused), key=lambda found: (found.place.path, found.place.line or 0)))
    bad = _is_bad(findings, strict=strict)
    code = ExitCode.INPUT if wrong and not seen.read else ExitCode.NO if bad else ExitCode.OK
    files = tuple(_read(seen, texts.refused))
    return Verdict(findings=findings, files=files, rules=rule_count(), ok=code is ExitCode.OK), code


def _read(seen: "Judged", refused: Sequence[InputError]) -> list[str]:
    return [*seen.paths, *(error.place.path for error in refused if error.place)]


def _of_process(
    pid: int, *, host: Host | None, ignore: Collection[str], strict: bool, system: System
) -> tuple[Verdict, ExitCode]:
    from selfhost.visibility.lint import lint_all, rule_count
    from selfhost.visibility.readers import procfs

    try:
        argv = procfs.split(system.read(f"/proc/{pid}/cmdline"))
        environ = procfs.split(system.read(f"/proc/{pid}/environ"))
    except PermissionError:
        raise InputError(
            f"the environment of pid {pid} may not be read",
            why="The kernel shows it to the process's own user and to root.",
            fix=(f"ask as that user:\nsudo selfhost lint --pid {pid}",),
            id="CF073",
        ) from None
    except OSError:
        argv, environ = (), ()
    if not argv:
        raise InputError(
            f"there is no process {pid} with a command line",
            why="It has ended, or is a thread of the kernel.",
            fix=("list what runs:\npgrep -af 'vllm|sglang'",),
            id="CF073",
        )
    workload = procfs.read(argv, environ, pid=pid)
    findings = tuple(found for found in lint_all((workload,), host) if found.id not in ignore)
    code = ExitCode.NO if _is_bad(findings, strict=strict) else ExitCode.OK
    return Verdict(findings=findings, files=(f"pid {pid}",), rules=rule_count(), ok=code is ExitCode.OK), code


def _is_bad(findings: Sequence[Finding], *, strict: bool) -> bool:
    worst = {Severity.ERROR, Severity.WARNING} if strict else {Severity.ERROR}
    return any(finding.severity in worst for finding in findings)
