"""asyncpg: an ID is an int; a sno needs a line."""

import asyncio

import asyncpg


async def main():
    db = await asyncpg.connect()
    await db.execute("CREATE TABLE orders (id bigint PRIMARY KEY DEFAULT flake_next('twitter'), item text)")

    # One row.
    id = await db.fetchval("INSERT INTO orders (item) VALUES ($1) RETURNING id", "tea")
    print(id, *await db.fetchrow("SELECT item, flake_timestamp(id) FROM orders WHERE id = $1", id))

    # Many rows in one statement; their IDs increase.
    items = [f"cup {number}" for number in range(1000)]
    rows = await db.fetch("INSERT INTO orders (item) SELECT unnest($1::text[]) RETURNING id, item", items)
    print(rows == sorted(rows), [row["item"] for row in rows] == items)

    # COPY, with IDs that the program has to know before. A consumer would miss rows whose IDs are of another transaction.
    async with db.transaction():
        ids = [row[0] for row in await db.fetch("SELECT flake_batch('twitter', $1)", len(items))]
        await db.copy_records_to_table("orders", records=zip(ids, items, strict=True), columns=["id", "item"])
    print(await db.fetchval("SELECT count(*) FROM orders WHERE id = ANY ($1)", ids))

    # asyncpg knows no types of extensions; a sno is a text.
    await db.set_type_codec("sno", schema="public", encoder=str, decoder=str, format="text")
    print(await db.fetchval("SELECT $1::sno", "6vv9gn2222222222"))

    try:
        await db.fetch("SELECT flake_timestamp($1)", -1)
    except asyncpg.NumericValueOutOfRangeError as error:
        print(error.sqlstate, error.hint)


asyncio.run(main())
