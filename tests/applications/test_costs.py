"""Adopted keys cost no more than bigserial: INSERTs of eight clients, and COPY. Rounds of both alternate."""

import re
import statistics
import time

from application import Application, report

ROUNDS, SECONDS, CLIENTS, COPIED = 11, 2, 8, 200_000
LAYOUTS = ["si", "twitter"]
KEYS = ["counted", *LAYOUTS]


def test_inserts_and_copies_cost_as_much_as_before(server):
    application = Application(server, "costs")
    for key in KEYS:
        application.sql(f"CREATE TABLE {key} (id bigserial PRIMARY KEY, v int)")
    application.sql("CREATE EXTENSION flake; CREATE EXTENSION flake_sequences")
    for layout in LAYOUTS:
        application.sql(f"CALL flake_adopt('{layout}', '{layout}')")
    client = server.of_client("postgres", application.name, "")
    inserts, copies = {key: [] for key in KEYS}, {key: [] for key in KEYS}
    rows = "".join(f"{n}\n" for n in range(COPIED))
    for number in range(ROUNDS):
        for key in KEYS if number % 2 else KEYS[::-1]:
            options = ["-c", CLIENTS, "-j", "2", "-T", SECONDS, "-M", "prepared"]
            printed = client.pgbench(f"INSERT INTO {key} (v) VALUES (1)", *options)
            inserts[key].append(float(re.search(r"tps = ([\d.]+)", printed)[1]))
            with application.connect() as db, db.cursor() as cursor:
                begin = time.monotonic()
                with cursor.copy(f"COPY {key} (v) FROM STDIN") as copy:
                    copy.write(rows)
                copies[key].append(time.monotonic() - begin)
            application.sql(f"TRUNCATE {key}; CHECKPOINT")
    for what, measured, most in ("inserts", inserts, None), ("copies", copies, 1.3):
        for layout in LAYOUTS:
            each = [one / counted for one, counted in zip(measured[layout], measured["counted"], strict=True)]
            ratio = statistics.median(each)
            medians = {key: round(statistics.median(measured[key]), 3) for key in ("counted", layout)}
            report(what, ratio=round(ratio, 3), **medians)
            # A busy machine shows more or less.
            assert ratio < most if most else ratio > 0.8
