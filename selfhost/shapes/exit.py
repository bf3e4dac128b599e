"""Every exit code of the command, in one place (documented in docs/reference/exit-codes.md)."""

from enum import IntEnum


class ExitCode(IntEnum):
    """What the process says to the shell. Stable: scripts rely on these."""

    OK = 0
    """Done and true."""
    NO = 1
    """The check ran and says no: smoke failed, the model does not fit, `explain` found a cause."""
    INPUT = 2
    """Wrong usage or input."""
    UNDECIDED = 3
    """It ran and cannot tell: too close to call, only skips."""
    ENVIRONMENT = 4
    """Something outside is missing or busy: driver, network, disk, permission, a held lock."""
    DEPLOY = 5
    """The deployment failed: the engine died or never got ready; a diagnosis is printed."""
    BUG = 70
    """Our own fault: the trace is in a log file, the report command is printed."""
    INTERRUPTED = 130
    """Ctrl-C: state is kept, a rerun continues."""
    CLOSED_PIPE = 141
    """The reader of stdout left before the end (`| head`), as of any Unix tool; nothing was judged by it."""
    TERMINATED = 143
    """SIGTERM: state is kept, a rerun continues."""
