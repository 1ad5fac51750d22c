"""Linux's openat2: one atomic resolution in the kernel, below a directory and without any link."""

import ctypes
import errno
import functools
import os
import sys
from collections.abc import Callable

_NUMBER = 437  # the same on every architecture
_NO_MAGICLINKS, _NO_SYMLINKS, _BENEATH = 0x02, 0x04, 0x08
_ATTEMPTS = 8

Opener = Callable[[int, str, int], int]


class _How(ctypes.Structure):
    _fields_ = (("flags", ctypes.c_uint64), ("mode", ctypes.c_uint64), ("resolve", ctypes.c_uint64))


def open_beneath(directory: int, path: str, flags: int) -> int:
    """Open `path` below the open `directory`; links, magic links and escapes are refused by the kernel.

    Raises:
        OSError: with the kernel's errno: EXDEV for an escape, ELOOP for a link, EAGAIN when renames kept racing.
    """
    how = _How(flags | os.O_CLOEXEC, 0, _BENEATH | _NO_MAGICLINKS | _NO_SYMLINKS)
    name = os.fsencode(path)
    for _ in range(_ATTEMPTS):
        found = _libc().syscall(_NUMBER, directory, name, ctypes.byref(how), ctypes.sizeof(how))
        if found >= 0:
            return int(found)
        number = ctypes.get_errno()
        if number not in {errno.EAGAIN, errno.EINTR}:
            break
    raise OSError(number, os.strerror(number))


@functools.cache
def available() -> bool:
    """Whether the kernel (5.6 or newer) offers it and no sandbox takes it away."""
    if sys.platform != "linux":
        return False
    top = os.open("/", os.O_PATH | os.O_DIRECTORY)
    try:
        os.close(open_beneath(top, "proc", os.O_PATH))
    except OSError as error:
        return error.errno not in {errno.ENOSYS, errno.EPERM}
    finally:
        os.close(top)
    return True


@functools.cache
def _libc() -> ctypes.CDLL:
    library = ctypes.CDLL(None, use_errno=True)
    library.syscall.restype = ctypes.c_long
    library.syscall.argtypes = (
        ctypes.c_long,
        ctypes.c_int,
        ctypes.c_char_p,
        ctypes.c_void_p,
        ctypes.c_size_t,
    )
    return library
