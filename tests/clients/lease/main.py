"""Runs examples/lease/lease.py: `vectors` computes tests/vectors/lease.csv anew, `time` prints the nanoseconds of an ID, `load` makes
IDs until its input ends, and prints them with the windows that it was given."""

import os
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


def load():
    output = threading.Lock()

    def ask(layout, worker, until):
        query = lease.QUERY % (f"'{layout}'", *("NULL" if value is None else value for value in (worker, until)))
        done = subprocess.run(["psql", "-XAtqc", query], check=True, capture_output=True, text=True)
        row = Row(*(int(field or 0) for field in done.stdout.strip().split("|")))
        if not row.wait:
            say([f"window {row.worker} {row.tick_from} {row.tick_until}"])
        return row

    def say(lines):
        with output:
            os.write(1, "".join(f"{line}\n" for line in lines).encode())

    ids = Ids("twitter", ask)
    threading.Thread(target=lambda: (sys.stdin.read(), os._exit(0)), daemon=True).start()
    while True:
        try:
            say([ids.next() for _ in range(10)])
        except RuntimeError as problem:
            say([f"none {problem.__cause__}".replace("\n", " ")])
        time.sleep(0.02)


{"vectors": vectors, "time": timed, "load": load}[sys.argv[1]]()
