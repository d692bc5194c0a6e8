import asyncio
import json

import asyncpg

from report import HOLE, IDS, report


async def main():
    db = await asyncpg.connect()

    async def keep(id, other):
        kept = await db.fetchrow("INSERT INTO kept (id, many) VALUES ($1, $2) RETURNING id, many", id, [id, other])
        return *kept, await db.fetchval("SELECT count(*) FROM kept WHERE id = $1", id)

    made = await db.fetchval("INSERT INTO made DEFAULT VALUES RETURNING id")
    try:
        await db.fetch("SELECT flake_timestamp($1)", -1)
    except asyncpg.PostgresError as raised:
        error = type(raised).__name__, raised.sqlstate
    # asyncpg returns a JSON document as text.
    documents = [await db.fetchval("SELECT jsonb_build_object('id', $1::bigint)", int(id)) for id in IDS]
    report(
        kept=[await keep(int(id), int(id)) for id in IDS],
        hole=await keep(HOLE, None),
        null=await db.fetchval("INSERT INTO kept (id) VALUES ($1) RETURNING id", None),
        read=[json.loads(document)["id"] for document in documents],
        written=[await db.fetchval("SELECT $1::jsonb ->> 'id'", json.dumps({"id": int(id)})) for id in IDS],
        made=(made, await db.fetchval("SELECT count(*) FROM made WHERE id = $1", made)),
        error=error,
    )


asyncio.run(main())
