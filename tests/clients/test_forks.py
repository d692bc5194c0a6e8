"""Processes that are forked from a program with a buffer, by servers of applications too, never make an ID twice."""

import contextlib
import shutil
import subprocess
import sys
import threading

import pytest

from buffer_programs import Talking
from package_programs import database, needs, node, programs, python
from waiting import wait_until

__all__ = ["database", "programs"]


FORKS = """
import flake_ids.process
flake_ids.process.IDLE = 3600  # the thread and its connection stay, however long the children take
asking, batch = [], Database.batch

def counted(*arguments):
    asking.append(True)
    try:
        return batch(*arguments)
    finally:
        asking.pop()

Database.batch = counted
ids = Ids("twitter", "", max_age=None, patience=60)
first = ids.take(1000)
# As many as were used are fetched, so each child has a copy of some hundred IDs.
while len(ids._process.buffer.first.ids) < 200:
    first += ids.take(1000) + [ids.next()]
left = len(ids._process.buffer.first.ids)

# Each process makes two of them, as it waits for three others.
together = multiprocessing.get_context("fork").Barrier(4)
def make(number):
    together.wait()
    return os.getpid(), [ids.next() for _ in range(2000)]

def sleeps(thread):
    quiet = 0
    while quiet < 10:
        state = open(f"/proc/self/task/{thread.native_id}/stat").read().rsplit(") ")[1][0]
        quiet = quiet + 1 if state == "S" and not asking else 0
        time.sleep(0.05)

def forked(fork, depth):
    reading, writing = os.pipe()
    if fork() == 0:
        made = [str(ids.next()) for _ in range(2000)]
        if depth:
            made += forked(fork, depth - 1)
        for one in made:
            os.write(writing, f"{one} ".encode())
        os._exit(0)
    os.close(writing)
    with os.fdopen(reading) as read:
        return read.read().split()

def without_hooks():
    # As uWSGI does; the C library knows no hooks of Python. A child hangs if a thread of its parent wants Python's own lock at
    # the fork. So the thread that fetches is stopped first, at a lock of flake_ids, which the child has as a copy that nobody
    # gives back.
    import ctypes
    process = ids._current()
    if process.thread is None:
        return ctypes.PyDLL(None).fork()
    with process.changed:
        process.changed.notify_all()
        sleeps(process.thread)
        return ctypes.PyDLL(None).fork()
"""


def test_processes_that_are_forked_never_make_an_id_twice(programs, database):
    made, left, pids, connected = python(programs, FORKS + """
def sessions():
    query = "SELECT array_agg(pid) FROM pg_stat_activity WHERE application_name = %s"
    with psycopg.connect("") as db:
        return db.execute(query, [f"flake-ids {os.getpid()}"]).fetchone()[0]
connected = [sessions()]
with multiprocessing.get_context("fork").Pool(4) as pool:
    by = pool.map(make, range(8), 1)
children = [int(one) for fork in (os.fork, without_hooks) for _ in range(2) for one in forked(fork, 1)]
connected.append(sessions())
rest = [ids.next() for _ in range(1000)]
everything = first + rest + [one for _, made in by for one in made] + children
wanted = len(first) + 1000 + 16000 + 4 * 4000
print(json.dumps([[wanted, len(everything), len(set(everything))], left, len({pid for pid, _ in by}), connected]))
""", database.environment)
    assert len(set(made)) == 1 and pids == 4 and left >= 200
    # Children have not closed the connection of their parent.
    assert connected[0] == connected[1] and len(connected[0]) == 1


def test_processes_of_a_cluster_never_make_an_id_twice(programs, database):
    made, distinct = node(programs, database, """
        const { default: cluster } = await import("node:cluster");
        const ids = new Ids("twitter", connect, { patience: 60, maxAge: Infinity });
        const made = [];
        for (let n = 0; n < 5000; n++) made.push(String(await ids.next()));
        if (cluster.isPrimary) {
          const workers = Array.from({ length: 4 }, () => cluster.fork());
          await Promise.all(workers.map((worker) => new Promise((resolve) => {
            worker.on("message", (theirs) => made.push(...theirs));
            worker.on("exit", resolve);
          })));
          await ids.close();
          console.log(JSON.stringify([made.length, new Set(made).size]));
        } else {
          process.send(made, () => process.exit(0));
        }
    """)  # fmt: skip
    assert made == distinct == 25000


APPLICATION = """
import os
from flake_ids import Ids
ids = Ids("twitter", "", max_age=None, patience=60)
ids.take(1000)
ids.next()
def application(environment, start):
    start("200 OK", [("Content-Type", "text/plain")])
    return [" ".join([str(os.getpid()), *(str(ids.next()) for _ in range(2000))]).encode()]
"""


# Without one of these, a child of uWSGI waits for ever for Python's lock if a thread of the parent wanted it at the fork.
UWSGI = {"own": ["--lazy-apps"], "hooks": ["--enable-threads", "--py-call-uwsgi-fork-hooks"]}


@pytest.mark.parametrize("server", ["gunicorn", *UWSGI])
def test_servers_that_fork_a_loaded_program(programs, database, tmp_path, server):
    needs("python")
    (tmp_path / "app.py").write_text(APPLICATION)
    address = str(tmp_path / "app")
    if server == "gunicorn":
        command = [sys.executable, "-m", "gunicorn", "--preload", "--workers", "4", "--bind", f"unix:{address}"]
        command.append("app:application")
    elif (program := shutil.which("uwsgi")) is None:
        pytest.skip("uwsgi is not there")
    else:
        command = [program, "--plugins", "python3", "--http-socket", address, "--master", "--processes", "4"]
        command += ["--wsgi-file", "app.py", "--need-app", *UWSGI[server]]
    path = f"{programs.python_path}:{tmp_path}"
    environment = database.environment | {"PYTHONPATH": path, "PYTHONDONTWRITEBYTECODE": "1"}
    with (tmp_path / "log").open("wb") as log:
        running = subprocess.Popen(command, cwd=tmp_path, env=environment, stdout=log, stderr=log)
    try:
        made = []
        wait_until((tmp_path / "app").exists)

        def get():
            command = ["curl", "-sf", "--retry", "20", "--retry-connrefused", "--unix-socket", address, "http://localhost/"]
            answer = subprocess.run(command, capture_output=True, check=True, text=True)
            made.append(answer.stdout.split())

        threads = [threading.Thread(target=get) for _ in range(24)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    finally:
        running.terminate() if server == "gunicorn" else running.send_signal(2)
        running.wait(60)
    ids = [one for _, *ids in made for one in ids]
    print(f"{len({pid for pid, *_ in made})} processes")
    assert len(ids) == len(set(ids)) == 24 * 2000, (tmp_path / "log").read_text()


def test_a_child_of_a_program_in_rust_gets_an_error(programs, database):
    """It has none of the threads of its parent, and the driver's connection is the parent's."""
    with contextlib.ExitStack() as ends:
        first, *rest = Talking(programs, "rust", ends).run(database, "fork").splitlines()
    child, = (line for line in rest if line.startswith("child"))
    parent, = (line for line in rest if line.startswith("parent"))
    assert child == "child error Forked -" and parent.split()[1].isdigit() and parent.split()[1] != first
