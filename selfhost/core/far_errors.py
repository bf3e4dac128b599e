"""Which errno a message of the C library names: a far shell tells errors in words. Pure."""

import errno
import os

# As glibc writes them in the C locale, and where it differs musl (Alpine, BusyBox) after it: src/errno/__strerror.h of
# musl, sysdeps/gnu/errlist.h of glibc. Longer texts first, because one may begin another.
_TEXTS: tuple[tuple[str, int], ...] = (
    ("No such device or address", errno.ENXIO),
    ("No such device", errno.ENODEV),
    ("No such file or directory", errno.ENOENT),
    ("nonexistent directory", errno.ENOENT),
    ("Directory nonexistent", errno.ENOENT),
    ("no such file", errno.ENOENT),
    ("Permission denied", errno.EACCES),
    ("Operation not permitted", errno.EPERM),
    ("Is a directory", errno.EISDIR),
    ("Not a directory", errno.ENOTDIR),
    ("Too many levels of symbolic links", errno.ELOOP),
    ("Symbolic link loop", errno.ELOOP),
    ("Device or resource busy", errno.EBUSY),
    ("Resource busy", errno.EBUSY),
    ("Input/output error", errno.EIO),
    ("I/O error", errno.EIO),
    ("Read-only file system", errno.EROFS),
    ("Invalid argument", errno.EINVAL),
    ("Operation not supported", errno.EOPNOTSUPP),
    ("Not supported", errno.EOPNOTSUPP),
    ("No data available", errno.ENODATA),
    ("Stale file handle", errno.ESTALE),
    ("Text file busy", errno.ETXTBSY),
    ("Cannot allocate memory", errno.ENOMEM),
    ("Out of memory", errno.ENOMEM),
    ("Transport endpoint is not connected", errno.ENOTCONN),
    ("Socket not connected", errno.ENOTCONN),
    ("Too many open files", errno.EMFILE),
    ("No file descriptors available", errno.EMFILE),
    ("Function not implemented", errno.ENOSYS),
    ("Connection timed out", errno.ETIMEDOUT),
)


def error_of(message: str, path: str) -> OSError:
    """The OSError that `message` tells of; EIO with the message itself when it is none we know."""
    number = next((number for text, number in _TEXTS if text in message), None)
    if number is None:
        return OSError(errno.EIO, message.strip()[-200:] or "it could not be read", path)
    return OSError(number, os.strerror(number), path)
