"""Measures flake and its alternatives on the server that PGHOST and the like name, and writes docs/ and README.md.

    run.py measure RESULTS       measures with clients, into a JSON file
    run.py standby RESULTS DIRECTORY   adds how old the watermark is of the standby whose socket is there
    run.py one-of-many RESULTS   adds what many clients get on a server that is one of 32 nodes
    run.py reconnecting RESULTS preloaded|loaded   adds what transactions get that each have a connection of their own
    run.py waiting RESULTS       adds what a session gets of a layout with few IDs, on a server that is one of 32 nodes
    run.py count RESULTS BINDIR DATA   adds instructions, in the stopped cluster in DATA
    run.py write RESULTS         writes tables and plots of PostgreSQL 19, or the tables of another version

FLAKE_BENCH_ROUNDS multiplies the rounds (0.2 for a look).
"""

import json
import os
import pathlib
import platform
import re
import sys

import psycopg

import consumers
import contestants
import filters
import first_id
import instructions
import loads
import queries
import sessions
import standby
import tables
import tightness
import writers

ROOT = pathlib.Path(__file__).resolve().parents[1]


def connect():
    return psycopg.connect(autocommit=True)


def rounds(number):
    return max(1, round(number * float(os.environ.get("FLAKE_BENCH_ROUNDS", "1"))))


def random_source(db):
    """The library that makes random bytes for UUIDs, of the version that this server has loaded."""
    loaded = pathlib.Path(f"/proc/{db.info.backend_pid}/maps").read_text()
    library = re.search(r"/\S*libcrypto\S*", loaded)
    version = library and re.search(rb"OpenSSL \d+\.\d+\.\d+", pathlib.Path(library[0]).read_bytes())
    return version[0].decode() if version else "no OpenSSL"


def machine(db):
    """The server, other extensions, the machine, the settings and the numbers of rounds."""
    processors = pathlib.Path("/proc/cpuinfo").read_text().splitlines()
    model = next((line.split(":")[1].strip() for line in processors if line.startswith("model name")), platform.machine())
    version, settings = db.execute("""
        SELECT current_setting('server_version'), string_agg(name || ' = ' || current_setting(name), ', ' ORDER BY name)
        FROM pg_settings WHERE name IN ('shared_buffers', 'fsync', 'max_wal_size', 'autovacuum')""").fetchone()
    others, = db.execute("""
        SELECT string_agg(extname || ' ' || extversion, ', ' ORDER BY extname) FROM pg_extension
        WHERE extname NOT IN ('plpgsql', 'flake')""").fetchone()
    return (
        f"PostgreSQL {version} with {random_source(db)}{f' and {others}' if others else ''}, "
        f"on {os.cpu_count()} cores of {model}, {platform.system()} {platform.machine()}; {settings}. "
        f"Medians of {rounds(30)} rounds of calls, {rounds(15)} of single-row INSERTs, and {rounds(5)} or more of the rest."
    )


def say(what):
    print(f"    {what}", flush=True)


def measure():
    with connect() as db:
        db.execute("CREATE EXTENSION IF NOT EXISTS flake")
        here, missing = contestants.present(db)
        for label, why in missing:
            say(f"without {label}: {why}")
        results = {
            "machine": machine(db),
            "labels": {c.key: c.label for c in here},
            "ours": [c.key for c in here if c.ours],
            "clients": sessions.NUMBERS,
            "twitter": queries.ids_of_twitter(db),
            "memory": queries.memory(connect),
        }
        say("calls")
        results["calls"] = queries.calls(db, here, rounds(30))
        results["rows"] = queries.rows(db, rounds(30))
        say("a million rows")
        results["fill"], results["wal"], results["repeated"] = tables.fill(db, here, rounds(5))
        unique = [c for c in here if c.key not in results["repeated"]]
        results |= of_tables(db, unique, rounds(5))
        say("COPY")
        results["loads"] = loads.measure(db, rounds(5))
        results["last hour"] = loads.last_hour(db, rounds(5))
        results["on disk"]["timed"] = results["last hour"]["MB"]["timed"]
        say("clients")
        results["inserts"] = sessions.inserts(db, here, rounds(15), 1)
        results["generating"] = sessions.generating(here, rounds(5), 1)
        results["tight"] = tight(db, here, rounds(3))
        results["consumers"] = consumers.measure(db, connect, rounds(5), 4)
        say("filters by time")
        results["filters"] = filters.measure(db, rounds(5))
        results["loaded"] = sessions.loaded(rounds(20), 1)
        results["profile"] = sessions.profile(here[0], 4)
        return results


def of_tables(db, unique, number):
    alike = [c for c in unique if not c.more]
    return {
        "on disk": tables.on_disk(db, unique),
        "sizes": tables.sizes(db, alike),
        "reads": tables.reads(db, alike, number),
        "copy": tables.copy(db, unique, number),
    }


def tight(db, here, number):
    participants = tightness.participants(here)
    tightness.create(db, participants)
    return {
        "labels": {c.key: c.label for c in participants},
        "ours": [c.key for c in participants if c.ours],
        "indexes": tightness.indexes(db, participants, number),
        "disorder": tightness.disorder(db, participants),
    }


def one_of_many():
    """The same on a node that has few workers: without UUIDs, for which that makes no difference."""
    with connect() as db:
        db.execute("CREATE EXTENSION IF NOT EXISTS flake")
        here = [c for c in contestants.ALL if c.key in ("sno", "bigserial")]
        return tight(db, here, rounds(3))


def count(here, bindir, data):
    calls = {c.key: c.call for c in contestants.ALL if c.key in here and c.is_call}
    return instructions.per_call(bindir, data, calls | {"flake_timestamp(n)": "flake_timestamp(n)", "abs(n)": "abs(n)"})


def main():
    part, file, *arguments = sys.argv[1:]
    path = pathlib.Path(file)
    results = json.loads(path.read_text()) if path.exists() else {}
    if part == "measure":
        results |= measure()
    elif part == "standby":
        say("the watermark of a standby")
        results["standby"] = standby.measure(connect, lambda: psycopg.connect(host=arguments[0], autocommit=True))
    elif part == "waiting":
        results["waiting"] = queries.waiting(connect)
    elif part == "reconnecting":
        say(f"connections of one transaction, library {arguments[0]}")
        results[f"reconnecting, {arguments[0]}"] = sessions.reconnecting(rounds(9), 2)
    elif part == "one-of-many":
        say("clients of one of 32 nodes")
        results["tight of 32"] = one_of_many()
    elif part == "count":
        say("instructions")
        results["instructions"] = count(results["labels"], *arguments)
        results["writers"] = writers.inserts(*arguments)
        results["first ID"] = first_id.first_and_exit(*arguments)
    elif part == "write":
        import plots
        import report

        if report.version(results) == report.MAIN:
            plots.draw(ROOT / "docs/explanation/benchmarks", results)
            report.write(ROOT, results)
        else:
            report.write_other(ROOT, results)
    path.write_text(json.dumps(results, indent=1))


if __name__ == "__main__":
    main()
