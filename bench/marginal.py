"""What one call costs inside a query, in nanoseconds: the time of a million rows that call it, less that of a million
that do not. Rounds are interleaved, medians are shown, and the ratios to nextval() hold where the machine's speed drifts.

Connects as PGHOST and the like say; `make bench` does so with a throwaway server.
"""

import statistics
import sys
import time

import psycopg

ROWS = 1_000_000
ROUNDS = int(sys.argv[1]) if len(sys.argv) > 1 else 7
CALLS = {
    "bare row": "n",
    "nextval('plain')": "nextval('plain')",
    "nextval('cached')": "nextval('cached')",
    "clock_timestamp()": "clock_timestamp()",
    "gen_random_uuid()": "gen_random_uuid()",
    "flake_next('twitter')": "flake_next('twitter')",
    "flake_next('custom')": "flake_next('custom')",
    "flake_next('tagged', 3)": "flake_next('tagged', 3)",
    "sno_next()": "sno_next()",
    "flake_timestamp(n)": "flake_timestamp(n)",
    "flake_timestamp(custom)": "flake_timestamp(n, 'custom')",
    "flake_decode(n)": "flake_decode(n)",
    "flake_encode(tsid)": "flake_encode(n, 'tsid')",
    "flake_min(t)": "flake_min(timestamptz '2024-01-01Z' + n * interval '1 ms')",
    "timestamptz + interval": "timestamptz '2024-01-01Z' + n * interval '1 ms'",
}


def main():
    with psycopg.connect(autocommit=True) as db:
        db.execute("SET jit = off; SET max_parallel_workers_per_gather = 0; SET work_mem = '256MB'")
        db.execute("CREATE EXTENSION IF NOT EXISTS flake")
        db.execute("CREATE SEQUENCE IF NOT EXISTS plain; CREATE SEQUENCE IF NOT EXISTS cached CACHE 32")
        db.execute("""SELECT flake_create_layout('custom', '{"like": "twitter", "epoch": "2020-01-01T00:00:00Z"}')""")
        db.execute("""SELECT flake_create_layout('tagged', '{"like": "twitter", "fields": [
            {"name": "time", "bits": 41, "role": "timestamp"}, {"name": "tag", "bits": 2, "role": "tag"},
            {"name": "worker", "bits": 8, "role": "worker"}, {"name": "sequence", "bits": 12, "role": "sequence"}]}')""")
        times = {name: [] for name in CALLS}
        for round_number in range(ROUNDS + 1):
            for name, call in CALLS.items():
                query = f"SELECT count(f) FROM (SELECT {call} AS f FROM generate_series(1, {ROWS}::bigint) n OFFSET 0) s"
                begin = time.perf_counter()
                db.execute(query)
                if round_number > 0:  # the first is a warm-up
                    times[name].append((time.perf_counter() - begin) / ROWS * 1e9)
    bare = statistics.median(times["bare row"])
    marginal = {name: statistics.median(t) - bare for name, t in times.items()}
    print(f"{'call':<24} {'ns per row':>10} {'marginal':>9} {'x nextval':>9}   (medians of {ROUNDS} rounds)")
    for name, ns in times.items():
        ratio = marginal[name] / marginal["nextval('plain')"]
        print(f"{name:<24} {statistics.median(ns):>10.1f} {marginal[name]:>9.1f} {ratio:>9.2f}")


if __name__ == "__main__":
    main()
