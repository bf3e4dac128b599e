"""The voice of the command: results on stdout, everything else on stderr, errors and findings with one face."""

import json as json_module
import re
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from typing import Final, Protocol, TextIO

from selfhost.core.errors import InputError, SelfhostError
from selfhost.core.terminal import Terminal, clean, is_tty, may_ask
from selfhost.shapes.exit import ExitCode
from selfhost.shapes.finding import Finding, Place, RunOn, Severity

_WIDEST: Final = 120
_EVIDENCE_LINES: Final = 5
_LITERAL: Final = re.compile(r"`[^`\n]+`")
_ROLE: Final = {Severity.ERROR: "error", Severity.WARNING: "warning", Severity.INFO: "literal"}
_ELSEWHERE: Final = {
    RunOn.CONTAINER_HOST: "on the container host: ",
    RunOn.HYPERVISOR: "on the hypervisor: ",
    RunOn.WINDOWS: "on Windows: ",
    RunOn.CLUSTER_ADMIN: "for the cluster's admin: ",
}


class LiveLine(Protocol):
    """Something that redraws a line on our terminal and can take it away for a moment."""

    def hidden(self) -> AbstractContextManager[None]: ...


class Console:
    """Where a command speaks. `json` and `quiet` may be set until the first word is said."""

    def __init__(
        self,
        stdout: TextIO,
        stderr: TextIO,
        env: Mapping[str, str],
        color: str = "auto",
        json: bool = False,  # noqa: FBT001, FBT002 - the signature other rooms build on
        quiet: bool = False,  # noqa: FBT001, FBT002 - the same
        *,
        stdin: TextIO | None = None,
        width: int | None = None,
    ) -> None:
        self._streams = (stdout, stderr)
        self._env = env
        self._width = width
        self._stdin = sys.stdin if stdin is None else stdin
        self._live: LiveLine | None = None
        self._document_written = False
        self.json_lines = False
        """Set with `--progress json`: stderr then holds one JSON object a line, and no prose."""
        self.json_asked = json
        self.quiet = quiet
        self.recolour(color)

    def recolour(self, color: str) -> None:
        """Decide anew about colours; `color` is auto, always or never."""
        self.out, self.err = (Terminal(stream, self._env, color=color, width=self._width) for stream in self._streams)

    def share(self, live: LiveLine) -> None:
        """Take `live` away before anything is written, from now on."""
        self._live = live

    def result(self, text: str) -> None:
        """The answer, on stdout. Raises BrokenPipeError when its reader has left."""
        with self._room():
            self.out.write(text + "\n")

    def json(self, obj: object) -> None:
        """The one JSON document of this run, on stdout."""
        self._document_written = True
        self.result(json_module.dumps(obj, ensure_ascii=not self.out.utf8))

    def note(self, text: str) -> None:
        """A remark on stderr; silent with --quiet, and among JSON lines."""
        if not (self.quiet or self.json_lines):
            self._remark(text)

    def error(self, error: SelfhostError) -> None:
        """An error for people on stderr, and with --json as a document on stdout, if there was none yet."""
        if self.json_lines:
            self._line(error_document(error))
        elif not (self.json_asked and self.quiet):
            place = f"{spot}: " if (spot := _spot(error.place)) and spot not in error.what else ""
            head = self._head("error", error.id, place + clean(error.what))
            self._remark("\n".join((head, *self._body(error.why, error.evidence, error.fix, RunOn.HERE))))
        if self.json_asked and not self._document_written:
            self.json(error_document(error))

    def interrupted(self, code: ExitCode) -> ExitCode:
        """Say that the run was ended from outside, and return `code`. Never raises: the process is on its way out."""
        what = "interrupted" if code is ExitCode.INTERRUPTED else "ended by a signal"
        if self.json_lines:
            self._line(_document("", what, code))
        self.note(what)
        if self.json_asked and not self._document_written:
            try:
                self.json(_document("", what, code))
            except (OSError, ValueError):
                return code  # nobody reads stdout any more
        return code

    def trace(self, text: str) -> None:
        """The trace of our own bug, on stderr, as it is."""
        if self.json_lines:
            self._line({"schema": "selfhost.trace/1", "text": text})
        else:
            self._remark(text.rstrip("\n"))

    def finding(self, finding: Finding) -> None:
        """One finding on stderr; `path:line:` first, so that editors make it a link."""
        if self.json_lines:
            self._line({"schema": "selfhost.finding/1", **finding.to_json()})
        else:
            self._remark(self.render(finding))

    def render(self, finding: Finding, *, terminal: Terminal | None = None) -> str:
        """A finding as text for `terminal` (stderr when not named), for commands whose result it is."""
        spot = f"{spot}: " if (spot := _spot(finding.place)) else ""
        head = spot + self._head(finding.severity.value, finding.id, clean(finding.title), terminal=terminal)
        body = self._body(finding.why, finding.evidence, finding.fix, finding.run_on, terminal=terminal)
        return "\n".join((head, *body))

    @property
    def may_ask(self) -> bool:
        """Whether somebody is there to answer."""
        for_programs = self.json_asked or self.json_lines
        return may_ask(stdin_is_tty=is_tty(self._stdin), stderr_is_tty=self.err.is_tty, json=for_programs)

    def confirm(self, question: str, *, yes: bool, command: str = "") -> bool:
        """Put a yes-or-no question; no is the default. Raises InputError where nobody can answer.

        `command` is the one that asks, as it was typed.
        """
        if yes:
            return True
        if not self.may_ask:
            raise InputError(
                f"this needs an answer: {question}",
                why=self._why_not_asked(),
                fix=(f"agree beforehand:\n{_agreed(command)}" if command else "agree beforehand with --yes",),
                id="CF094",
            )
        with self._room():
            self.err.write(f"{question} [y/N] ")
            return self._stdin.readline().strip().lower() in ("y", "yes")

    def _why_not_asked(self) -> str:
        option = "--json" if self.json_asked else "--progress json" if self.json_lines else ""
        return f"With {option} nothing is asked." if option else "There is no terminal to ask on."

    def _line(self, document: Mapping[str, object]) -> None:
        self._remark(json_module.dumps(document, ensure_ascii=not self.err.utf8))

    def _remark(self, text: str) -> None:
        try:
            with self._room():
                self.err.write(text + "\n")
        except (OSError, ValueError):
            return  # nobody reads stderr any more; the exit code still says it

    def _room(self) -> AbstractContextManager[None]:
        return nullcontext() if self._live is None else self._live.hidden()

    def _head(self, severity: str, id: str, what: str, *, terminal: Terminal | None = None) -> str:
        terminal = terminal or self.err
        role = _ROLE[Severity(severity)]
        label = f"{severity}[{id}]" if id else severity
        return f"{terminal.paint(role, label)}: {_literals(' '.join(what.split()), terminal)}"

    def _body(
        self, why: str, evidence: str, fix: Sequence[str], run_on: RunOn, *, terminal: Terminal | None = None
    ) -> Iterator[str]:
        terminal = terminal or self.err
        width = min(terminal.width, _WIDEST)
        if why:
            yield _literals(_wrap(why, width=width, first="  ", then="  "), terminal)
        yield from (f"    | {line}" for line in _excerpt(evidence))
        for action in fix:
            text, *commands = clean(action).strip("\n").split("\n")
            text = _ELSEWHERE.get(run_on, "") + text
            yield _literals(_wrap(text, width=width, first="  → ", then="    "), terminal)
            yield from (f"      {terminal.paint('literal', command)}" for command in _undented(commands))


def _undented(commands: Sequence[str]) -> list[str]:
    """Without the indent that all share: what a line of YAML stands below is kept."""
    import textwrap  # at use, as below

    return [line.rstrip() for line in textwrap.dedent("\n".join(commands)).split("\n") if line.strip()]


def error_document(error: SelfhostError) -> dict[str, object]:
    """The stable JSON form of an error."""
    place = None
    if error.place is not None:
        place = {"path": error.place.path, "line": error.place.line, "object": error.place.object}
    return _document(
        error.id,
        error.what,
        error.exit_code,
        why=error.why,
        evidence=error.evidence,
        fix=list(error.fix),
        place=place,
    )


def _document(id: str, what: str, code: ExitCode, **more: object) -> dict[str, object]:
    details: dict[str, object] = {"why": "", "evidence": "", "fix": [], "place": None, **more}
    return {
        "schema": "selfhost.error/1",
        "ok": False,
        "exit_code": int(code),
        "error": {"id": id, "what": what, **details},
    }


def _agreed(command: str) -> str:
    """`command` with --yes, which is an option of ours: before what is passed on to the engine."""
    own, passed_on, rest = command.partition(" -- ")
    return f"{own} --yes{passed_on}{rest}"


def _spot(place: Place | None) -> str:
    if place is None or not place.path:
        return ""
    return f"{place.path}:{place.line}" if place.line else place.path


def _excerpt(evidence: str) -> list[str]:
    lines = [line.rstrip() for line in clean(evidence).split("\n") if line.strip()]
    if len(lines) <= _EVIDENCE_LINES:
        return lines
    kept = _EVIDENCE_LINES - 1
    return [*lines[:kept], f"… and {len(lines) - kept} more lines"]


def _wrap(text: str, *, width: int, first: str, then: str) -> str:
    import textwrap  # at use: most runs have nothing to wrap

    return textwrap.fill(
        clean(text),
        width=width,
        initial_indent=first,
        subsequent_indent=then,
        break_long_words=False,
        break_on_hyphens=False,
    )


def _literals(text: str, terminal: Terminal) -> str:
    return _LITERAL.sub(lambda match: terminal.paint("literal", match[0]), text)
