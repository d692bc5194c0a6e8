"""Starts a program, prints its process ID, and reaps everything that it leaves behind. Otherwise nobody would do that in time,
and engines would take an ended server for a running one."""

import ctypes
import os
import sys

PR_SET_CHILD_SUBREAPER = 36

if __name__ == "__main__":
    ctypes.CDLL(None).prctl(PR_SET_CHILD_SUBREAPER, 1)
    child = os.fork()
    if not child:
        # Its output goes to standard error.
        os.dup2(2, 1)
        os.execvp(sys.argv[1], sys.argv[1:])
    print(child, flush=True)
    while True:
        try:
            os.wait()
        except ChildProcessError:
            break
