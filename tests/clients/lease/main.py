"""Runs the package of Python. `vectors` computes tests/vectors/lease.csv again, `seal` computes tests/vectors/seal.csv, `time`
prints how many nanoseconds an ID takes, and `load` makes IDs until its input ends, then prints them with the leases that it got
through psql or through the socket LESSOR. SIGUSR1 makes `load` fork, and the child prints to a file of its own. SIGUSR2 sets the
clock that it sees."""

import json
import os
import random
import signal
import socket
import subprocess
import sys
import threading
import time
import uuid

from pgflake import Ids, InvalidID, Key, NoLease, lessee
from pgflake.database import COLUMNS, Database
from pgflake.window import SECOND, Row, Window


def row(fields):
    return Row(fields[0] or None, *(int(field or 0) for field in fields[1:]))


def vectors():
    for line in map(str.rstrip, sys.stdin):
        kind, *fields = line.split(",")
        if kind == "window":
            window = Window()
        elif kind == "answered":
            window.answered(row(fields[3:]), *map(int, fields[:3]))
        elif kind == "failed":
            window.failed(int(fields[0]), int(fields[1]))
        elif kind == "release":
            token, last = window.release()
            line = f"release,{token or ''},{last or ''}"
        elif kind == "id":
            made = window.id(int(fields[0]), lambda fields=fields: int(fields[1]))
            line = f"id,{fields[0]},{fields[1]},{'' if made is None else made}"
        elif kind == "asks":
            is_due = window.asks(int(fields[0]), int(fields[1]))
            line = f"asks,{fields[0]},{fields[1]},{(window.token or 'new') if is_due else ''}"
        print(line)


def seal():
    for line in sys.stdin:
        secret, number, sealed, _ = line.rstrip("\n").split(",")
        key = Key("usr", bytes.fromhex(secret))
        block = key.seal_uuid(int(number)) if number else uuid.UUID(sealed)
        try:
            opened = key.unseal_uuid(block)
            text = key.seal(opened)
            assert key.unseal(text) == opened
            print(secret, opened, block, text.removeprefix("usr_"), sep=",")
        except InvalidID:
            print(secret, "", block, "", sep=",")


def timed():
    now = lessee.wall()
    Database.lease = lambda *_: Row(None, 0, 1, 1, now // 1000, now, 22, 1 << 21, 0, 1 << 21, 0, 1000, now, now + 10**10)
    ids, best = Ids("fake"), 10**9
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


def ask_psql(layout, token):
    query = f"SELECT {COLUMNS} FROM flake_lease('{layout}', {token or 'NULL'}::bigint)"
    done = subprocess.run(["psql", "-XAtqc", query], check=False, capture_output=True, text=True)
    if done.returncode:
        raise RuntimeError(done.stderr.strip())
    return row(done.stdout.strip().split("|"))


def ask(_, *arguments):
    row = (ask_socket if "LESSOR" in os.environ else ask_psql)(*arguments)
    if row.reason is None:
        say([f"window {row.low} {row.tick_from} {row.tick_until} {row.count}"])
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
    lessee.wall = lambda: time.time_ns() // 1000 + seconds * SECOND


def load():
    asked = []
    signal.signal(signal.SIGUSR1, lambda *_: asked.append(True))
    signal.signal(signal.SIGUSR2, lambda *_: set_clock(random.choice([-3600, -2, 0, 2, 3600])))
    Database.lease = ask
    ids = Ids("twitter")
    end_with_input()
    while True:
        if asked:
            asked.clear()
            fork()
        try:
            say([ids.next() for _ in range(10)])
        except NoLease as problem:
            say([f"none {time.time_ns() // 1000} {problem.__cause__}".replace("\n", " ")])
        time.sleep(0.02)


{"vectors": vectors, "seal": seal, "time": timed, "load": load}[sys.argv[1]]()
