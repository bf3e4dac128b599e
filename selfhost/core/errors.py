"""Errors a person can act on. Raised below, worded where they arise, printed in one place (cli.run)."""

from collections.abc import Sequence
from typing import ClassVar

from selfhost.shapes.exit import ExitCode
from selfhost.shapes.finding import Place


class SelfhostError(Exception):
    """What was seen, why (the layer, in a clause), and the fix.

    `fix` holds one entry per action, in the order to try: a sentence, then commands to paste, one per line.
    """

    exit_code: ClassVar[ExitCode]

    def __init__(
        self,
        what: str,
        *,
        why: str = "",
        fix: Sequence[str] = (),
        evidence: str = "",
        id: str = "",
        place: Place | None = None,
    ) -> None:
        super().__init__(what)
        self.what = what
        self.why = why
        self.fix = tuple(fix)
        self.evidence = evidence
        self.id = id
        self.place = place


class InputError(SelfhostError):
    """Flags, files, a model that is not one."""

    exit_code = ExitCode.INPUT


class EnvironmentMissing(SelfhostError):
    """Driver, engine, permission, disk, network."""

    exit_code = ExitCode.ENVIRONMENT


class Busy(SelfhostError):
    """A lock or a port is held: who, since when."""

    exit_code = ExitCode.ENVIRONMENT


class DeployFailed(SelfhostError):
    """The engine died or never got ready; carries the diagnosis."""

    exit_code = ExitCode.DEPLOY


class DoesNotFit(SelfhostError):
    """The arithmetic says no."""

    exit_code = ExitCode.NO
