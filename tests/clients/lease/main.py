"""Runs examples/lease/lease.py. `vectors` computes tests/vectors/lease.csv again, `time` prints how many nanoseconds an ID
takes, and `load` makes IDs until its input ends, then prints them with the leases that it got through psql or through the
socket LESSOR. SIGUSR1 makes `load` fork, and the child prints to a file of its own. SIGUSR2 sets the clock that it sees."""

import json
import os
import random
import signal
import socket
import subprocess
import sys
import threading
import time

import lease
from lease import Ids, Row, Window


def vectors():
    for line in map(str.rstrip, sys.stdin):
        kind, *fields = line.split(",")
        if kind == "window":
            window = Window()
        elif kind == "answered":
            sent, came, wall, *row = map(int, fields)
            window.answered(Row(*row), sent, came, wall)
        elif kind == "failed":
            window.failed(int(fields[0]))
        elif kind == "id":
            made = window.id(int(fields[0]), lambda fields=fields: int(fields[1]))
            line = f"id,{fields[0]},{fields[1]},{'' if made is None else made}"
        elif kind == "asks":
            ask = window.asks(int(fields[0]), int(fields[1]))
            line = f"asks,{fields[0]},{fields[1]},{'' if ask is None else 'new' if ask[0] is None else '{} {}'.format(*ask)}"
        print(line)


def timed():
    now = lease.wall()
    ids, best = Ids("fake", lambda *_: Row(1, now // 1000, now, 22, 1 << 21, 1 << 21, 0, 1000, now, now + 10**10, 0)), 10**9
    for _ in range(200):
        ids.next()
        began = time.perf_counter_ns()
        for _ in range(2000):
            ids.next()
        best = min(best, (time.perf_counter_ns() - began) // 2000)
    print(best)


def ask_socket(*arguments):
    """Asks the server behind LESSOR, which answers with a row or not at all."""
    with socket.socket(socket.AF_UNIX) as lessor:
        lessor.connect(os.environ["LESSOR"])
        lessor.sendall(f"{json.dumps([os.getpid(), *arguments])}\n".encode())
        return Row(*json.loads(lessor.makefile().readline()))


def ask_psql(layout, worker, until):
    query = lease.QUERY % (f"'{layout}'", *("NULL" if value is None else value for value in (worker, until)))
    done = subprocess.run(["psql", "-XAtqc", query], check=False, capture_output=True, text=True)
    if done.returncode:
        raise RuntimeError(done.stderr.strip())
    return Row(*(int(field or 0) for field in done.stdout.strip().split("|")))


def ask(*arguments):
    row = (ask_socket if "LESSOR" in os.environ else ask_psql)(*arguments)
    if not row.wait:
        say([f"window {row.worker} {row.tick_from} {row.tick_until}"])
    return row


output = threading.Lock()


def say(lines):
    with output:
        os.write(1, "".join(f"{line}\n" for line in lines).encode())


def end_with_input():
    threading.Thread(target=lambda: (os.read(0, 1), os._exit(0)), daemon=True).start()


def fork():
    with output:
        if os.fork() == 0:
            os.dup2(os.open(f"{os.environ['OUTPUT']}.{os.getpid()}", os.O_WRONLY | os.O_CREAT), 1)
            end_with_input()


def set_clock(seconds):
    lease.wall = lambda: time.time_ns() // 1000 + seconds * lease.SECOND


def load():
    asked = []
    signal.signal(signal.SIGUSR1, lambda *_: asked.append(True))
    signal.signal(signal.SIGUSR2, lambda *_: set_clock(random.choice([-3600, -2, 0, 2, 3600])))
    ids = Ids("twitter", ask)
    end_with_input()
    while True:
        if asked:
            asked.clear()
            fork()
        try:
            say([ids.next() for _ in range(10)])
        except RuntimeError as problem:
            say([f"none {time.time_ns() // 1000} {problem.__cause__}".replace("\n", " ")])
        time.sleep(0.02)


{"vectors": vectors, "time": timed, "load": load}[sys.argv[1]]()
