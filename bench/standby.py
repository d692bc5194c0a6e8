"""How old the watermark of a standby is, beside what it has replayed: while clients insert on the primary and somebody publishes
watermarks there. For a while, the standby does not replay."""

import itertools
import statistics
import threading
import time

from sessions import pgbench

SECONDS, START, INTERVAL, EVERY = 12, 1, 0.05, 0.01
PAUSED = 5.0, 7.0
CLIENTS, PER_SECOND = 4, 400
SETUP = """CREATE EXTENSION IF NOT EXISTS flake; DROP TABLE IF EXISTS replayed;
           CREATE TABLE replayed (id bigint PRIMARY KEY DEFAULT flake_next('twitter'), n integer)"""
INSERT = "INSERT INTO replayed (n) VALUES (1);\n"
AGES = """SELECT extract(epoch FROM clock_timestamp() - flake_watermark())::float8,
                 extract(epoch FROM clock_timestamp() - pg_last_xact_replay_timestamp())::float8"""


def publish(connect, ends, times):
    with connect() as db:
        while not ends.wait(INTERVAL):
            db.execute("SELECT flake_publish_watermark()")
            times.append(time.monotonic())


def sample(connect_to_standby, began, ends, samples):
    """Once clients are at work and something was published."""
    ends.wait(START)
    with connect_to_standby() as db:
        while not ends.wait(EVERY):
            samples.append((time.monotonic() - began, *db.execute(AGES).fetchone()))


def pause(connect_to_standby, ends):
    with connect_to_standby() as db:
        if not ends.wait(PAUSED[0]):
            db.execute("SELECT pg_wal_replay_pause()")
            ends.wait(PAUSED[1] - PAUSED[0])
            db.execute("SELECT pg_wal_replay_resume()")


def measure(connect, connect_to_standby):
    with connect() as db:
        db.execute(SETUP)
    ends, samples, times, began = threading.Event(), [], [], time.monotonic()
    runs = (publish, connect, ends, times), (pause, connect_to_standby, ends), (sample, connect_to_standby, began, ends, samples)
    threads = [threading.Thread(target=run, args=arguments) for run, *arguments in runs]
    for thread in threads:
        thread.start()
    try:
        pgbench(INSERT, CLIENTS, seconds=SECONDS, per_second=PER_SECOND, synchronous_commit="off")
    finally:
        ends.set()
        for thread in threads:
            thread.join()
    more = sorted(watermark - replay for _, watermark, replay in samples)
    return {
        "interval": INTERVAL, "samples": samples, "paused": PAUSED,
        "longest": max(later - earlier for earlier, later in itertools.pairwise(times)),
        "more": [statistics.median(more), more[int(len(more) * 0.99)], more[-1]],
    }  # fmt: skip
