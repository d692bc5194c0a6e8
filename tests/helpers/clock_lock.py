"""The lock of libfaketime. All processes of a server share it, and a process that is killed may leave it locked for ever.

libfaketime takes it around stat() and similar calls. Releasing it needs the right to open the memory of another process, as
root has.
"""

import contextlib
import ctypes
import mmap
import os
import struct
import threading
import time

NAME = "faketime_sem"
# How many seconds a living process may hold it, even on a busy machine.
LONG = 5


def release(process):
    """Returns whether the lock was held all the time, and releases it then."""
    with contextlib.suppress(OSError), open(f"/proc/{process}/maps", encoding="ascii") as maps:
        for line in maps:
            if NAME in line:
                return release_at(f"/proc/{process}/map_files/{line.split()[0]}")
    return False


def release_at(path):
    file = os.open(path, os.O_RDWR)
    try:
        with mmap.mmap(file, 0) as memory:
            until = time.monotonic() + LONG
            while time.monotonic() < until:
                value, = struct.unpack_from("<i", memory)
                if value > 0:
                    return False
                time.sleep(0.01)
            semaphore = (ctypes.c_char * 1).from_buffer(memory)
            ctypes.CDLL(None).sem_post(ctypes.byref(semaphore))
            del semaphore
            return True
    finally:
        os.close(file)


@contextlib.contextmanager
def guarded(servers):
    """Releases such locks of these servers until the end of a `with`. `servers` may grow in the meantime."""
    ends = threading.Event()

    def guard():
        while not ends.wait(1):
            for server in list(servers):
                with contextlib.suppress(OSError, ValueError, IndexError):
                    release(int((server.dir / "data" / "postmaster.pid").read_text().split()[0]))

    thread = threading.Thread(target=guard, daemon=True)
    thread.start()
    try:
        yield
    finally:
        ends.set()
        thread.join()
