import psycopg
from psycopg.types.json import Jsonb

from report import HOLE, IDS, SET_UP, report

with psycopg.connect(autocommit=True) as db:
    # Results are in the text format, or in the binary one.
    cursor = db.cursor(binary=SET_UP)

    def row(query, *parameters):
        return cursor.execute(query, parameters).fetchone()

    def keep(id, other):
        kept = row("INSERT INTO kept (id, many) VALUES (%s, %s) RETURNING id, many", id, [id, other])
        return *kept, *row("SELECT count(*) FROM kept WHERE id = %s", id)

    made, = row("INSERT INTO made DEFAULT VALUES RETURNING id")
    try:
        row("SELECT flake_timestamp(%s::bigint)", -1)
    except psycopg.Error as raised:
        error = type(raised).__name__, raised.sqlstate
    report(
        kept=[keep(int(id), int(id)) for id in IDS],
        hole=keep(HOLE, None),
        null=row("INSERT INTO kept (id) VALUES (%s) RETURNING id", None)[0],
        read=[row("SELECT jsonb_build_object('id', %s::bigint)", int(id))[0]["id"] for id in IDS],
        written=[row("SELECT %s ->> 'id'", Jsonb({"id": int(id)}))[0] for id in IDS],
        made=(made, *row("SELECT count(*) FROM made WHERE id = %s", made)),
        error=error,
    )
