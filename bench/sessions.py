"""Many sessions at once, by pgbench; and what the processor is busy with meanwhile."""

import operator
import os
import pathlib
import re
import shutil
import subprocess
import tempfile

import psycopg

from rounds import compared, interleaved, medians

NUMBERS = [1, 8, 32]
GENERATED = 10_000
CONNECTIONS = 400


def pgbench(script, clients, seconds=None, transactions=None, per_second=None, reconnects=False, **options):
    """Transactions per second, of some seconds or of some transactions of each client. If that is said, no more than so many, or
    each on a connection of its own."""
    length = ["-T", str(seconds)] if seconds else ["-t", str(transactions)]
    if per_second:
        length += ["-R", str(per_second)]
    if reconnects:
        length.append("-C")
    options = " ".join(f"-c {name}={value}" for name, value in options.items())
    with tempfile.NamedTemporaryFile("w", suffix=".sql") as file:
        file.write(script)
        file.flush()
        done = subprocess.run(
            ["pgbench", "-n", "-M", "prepared", "-f", file.name, "-c", str(clients), "-j", "2", *length],
            check=True, capture_output=True, text=True, env=os.environ | {"PGOPTIONS": options},
        )  # fmt: skip
    return float(re.search(r"tps = ([\d.]+) \((?:without|including)", done.stdout)[1])


def by_clients(contestants, rounds, job):
    """Rates for each number of clients, and what they are of bigserial's."""
    rates, ratios = [], []
    for clients in NUMBERS:
        values = interleaved(rounds, {c.key: job(c, clients) for c in contestants})
        rates.append(medians(values))
        ratios.append(compared(values, "bigserial", operator.truediv))
    return tuple({c.key: [each[c.key] for each in found] for c in contestants} for found in (rates, ratios))


def inserts(db, contestants, rounds, seconds):
    """Single-row INSERTs per second into an empty table, synchronous_commit off."""
    def job(contestant, clients):
        def run():
            db.execute(f"TRUNCATE {contestant.table}")
            db.execute("CHECKPOINT")
            return pgbench(f"INSERT INTO {contestant.table} (n) VALUES (1);\n", clients, seconds, synchronous_commit="off")

        return run

    return by_clients([c for c in contestants if not c.insert], rounds, job)


def reconnecting(rounds, seconds):
    """Transactions per second of single-row INSERTs, each on a connection of its own, beside bigserial's; by how many
    microseconds of one client they are longer; and the processor's time that the server takes for one, of bigserial's."""
    def script(key):
        return f"INSERT INTO of_{key} (n) VALUES (1);\n"

    def job(key, clients):
        return lambda: pgbench(script(key), clients, seconds, reconnects=True, synchronous_commit="off")

    def processor(key):
        def run():
            before = of_sessions_that_ended()
            pgbench(script(key), 1, transactions=CONNECTIONS, reconnects=True, synchronous_commit="off")
            return max(1, of_sessions_that_ended() - before)

        return run

    found = {}
    for clients in (1, 8):
        rates = interleaved(rounds, {key: job(key, clients) for key in ("flake", "bigserial")})
        found[clients] = {
            "ratio": compared(rates, "bigserial", operator.truediv)["flake"],
            "longer": compared(rates, "bigserial", lambda own, base: 1e6 / own - 1e6 / base)["flake"] if clients == 1 else None,
        }
    times = interleaved(rounds, {key: processor(key) for key in ("flake", "bigserial")})
    found["processor"] = compared(times, "bigserial", operator.truediv)["flake"]
    return found


def of_sessions_that_ended():
    """The processor's time, in the kernel's ticks, that the server's processes had used when they ended."""
    with psycopg.connect(autocommit=True) as db:
        postmaster, = db.execute("SELECT split_part(pg_read_file('postmaster.pid'), E'\\n', 1)").fetchone()
    _, fields = pathlib.Path(f"/proc/{postmaster}/stat").read_text().rsplit(")", 1)
    user, system = fields.split()[13:15]
    return int(user) + int(system)


def generating(contestants, rounds, seconds):
    """Millions of IDs per second that nobody stores."""
    def job(contestant, clients):
        script = f"SELECT count(f) FROM (SELECT {contestant.call} f FROM generate_series(1, {GENERATED}) OFFSET 0) s;\n"
        return lambda: pgbench(script, clients, seconds) * GENERATED / 1e6

    return by_clients([c for c in contestants if c.key in ("flake", "bigserial", "cached")], rounds, job)


def loaded(rounds, seconds):
    """Transactions that make no ID, per second, with the library loaded over without it."""
    def job(script, library):
        return lambda: pgbench(script, 1, seconds, session_preload_libraries=library)

    scripts = {"SELECT 1": "SELECT 1;\n", "bigserial": "INSERT INTO of_bigserial (n) VALUES (1);\n"}
    ratios = {}
    for name, script in scripts.items():
        rates = interleaved(rounds, {library: job(script, library) for library in ("flake", "")})
        ratios[name] = compared(rates, "", operator.truediv)["flake"]
    return ratios


def profile(contestant, seconds):
    """Percent of the time of eight inserting sessions that is spent in flake's library; none without perf."""
    if not shutil.which("perf"):
        return None
    with tempfile.TemporaryDirectory() as folder:
        data = pathlib.Path(folder, "perf.data")
        script = pathlib.Path(folder, "insert.sql")
        script.write_text(f"INSERT INTO {contestant.table} (n) VALUES (1);\n")
        load = subprocess.Popen(
            ["pgbench", "-n", "-M", "prepared", "-f", script, "-c", "8", "-j", "2", "-T", str(seconds + 2)],
            stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
            env=os.environ | {"PGOPTIONS": "-c synchronous_commit=off"},
        )  # fmt: skip
        record = ["perf", "record", "-q", "-a", "-F", "999", "-e", "cpu-clock", "-o", data, "--", "sleep", str(seconds)]
        recorded = subprocess.run(record, check=False, capture_output=True)
        load.wait()
        if recorded.returncode != 0:
            return None
        report = subprocess.run(
            ["perf", "report", "-i", data, "--stdio", "--sort", "comm,dso"], check=True, capture_output=True, text=True,
        ).stdout  # fmt: skip
    lines = (line.split() for line in report.splitlines() if re.match(r"\s+[\d.]+%\s+postgres\s", line))
    shares = {words[2]: float(words[0].rstrip("%")) for words in lines}
    return 100 * shares.get("flake.so", 0) / sum(shares.values())
