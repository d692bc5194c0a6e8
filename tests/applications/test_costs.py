"""Adopted keys cost no more than bigserial: INSERTs of eight clients, and COPY. Rounds of both alternate."""

import re
import statistics
import time

from application import Application, report

ROUNDS, SECONDS, CLIENTS, COPIED = 7, 3, 8, 200_000
KEYS = ["counted", "adopted"]


def test_inserts_and_copies_cost_as_much_as_before(server):
    application = Application(server, "costs")
    for key in KEYS:
        application.sql(f"CREATE TABLE {key} (id bigserial PRIMARY KEY, v int)")
    application.sql("CREATE EXTENSION flake; CREATE EXTENSION flake_sequences")
    application.sql("CALL flake_adopt('adopted', 'si')")
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
    found = {}
    for what, measured in ("inserts", inserts), ("copies", copies):
        each = [adopted / counted for adopted, counted in zip(measured["adopted"], measured["counted"], strict=True)]
        found[what] = statistics.median(each)
        medians = {key: round(statistics.median(values), 3) for key, values in measured.items()}
        report(what, ratio=round(found[what], 3), **medians)
    assert found["inserts"] > 0.8 and found["copies"] < 1.2
