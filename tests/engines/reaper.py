"""Starts a program, says its number, and waits for all that it leaves behind: nobody else may do so in time, and engines take a
server that has ended for one that runs."""

import ctypes
import os
import sys

PR_SET_CHILD_SUBREAPER = 36

if __name__ == "__main__":
    ctypes.CDLL(None).prctl(PR_SET_CHILD_SUBREAPER, 1)
    child = os.fork()
    if not child:
        # Its output goes where the errors go.
        os.dup2(2, 1)
        os.execvp(sys.argv[1], sys.argv[1:])
    print(child, flush=True)
    while True:
        try:
            os.wait()
        except ChildProcessError:
            break
