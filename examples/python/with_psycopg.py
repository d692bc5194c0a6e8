"""psycopg 3: an ID is an int."""

import psycopg

with psycopg.connect(autocommit=True) as db:
    db.execute("CREATE TABLE orders (id bigint PRIMARY KEY DEFAULT flake_next('twitter'), item text)")

    # One row.
    (id,) = db.execute("INSERT INTO orders (item) VALUES (%s) RETURNING id", ["tea"]).fetchone()
    print(id, *db.execute("SELECT item, flake_timestamp(id) FROM orders WHERE id = %s", [id], binary=True).fetchone())

    # Many rows in one statement; their IDs increase.
    items = [f"cup {number}" for number in range(1000)]
    rows = db.execute("INSERT INTO orders (item) SELECT unnest(%s::text[]) RETURNING id, item", [items]).fetchall()
    print(rows == sorted(rows), [item for _, item in rows] == items)

    # COPY, with IDs that the program has to know before. A consumer would miss rows whose IDs are of another transaction.
    with db.transaction(), db.cursor() as cursor:
        ids = [id for id, in cursor.execute("SELECT flake_batch('twitter', %s)", [len(items)])]
        with cursor.copy("COPY orders (id, item) FROM STDIN (FORMAT binary)") as copy:
            copy.set_types(["int8", "text"])
            for row in zip(ids, items, strict=True):
                copy.write_row(row)

    # Statements that do not wait for each other.
    with db.pipeline():
        cursors = [db.execute("INSERT INTO orders (item) VALUES (%s) RETURNING id", [item]) for item in items]
        ids += [cursor.fetchone()[0] for cursor in cursors]
    print(db.execute("SELECT count(*) FROM orders WHERE id = ANY (%s)", [ids]).fetchone())

    # An error has an SQLSTATE, a DETAIL and a HINT.
    try:
        db.execute("SELECT flake_timestamp(%s::bigint)", [-1])
    except psycopg.errors.NumericValueOutOfRange as error:
        print(error.sqlstate, error.diag.message_hint)
