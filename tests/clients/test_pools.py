"""Requests for IDs on a connection of a pool, which is the application's own."""

import contextlib

from buffer_programs import Talking
from package_programs import database, node, programs

__all__ = ["database", "programs"]


def test_a_pool_of_pg(programs, database):
    """A request gives its connection back, takes no part in a transaction, and ends a connection that has failed."""
    made, counters, failed = node(programs, database, """
        const pool = new pg.Pool({ max: 1 });
        pool.on("error", () => undefined);
        const ids = new Ids("twitter", pool, { patience: 60 });
        const made = await ids.take(100);
        const client = await pool.connect();
        await client.query("BEGIN");
        for (let n = 0; n < 10; n++) made.push(ids.tryNext());
        const { pid } = (await client.query("SELECT pg_backend_pid() AS pid")).rows[0];
        await client.query("ROLLBACK");
        client.release();
        made.push(...(await ids.take(100)));
        const other = new pg.Client();
        await other.connect();
        await other.query("SELECT pg_terminate_backend($1)", [pid]);
        made.push(...(await ids.take(100)));
        await ids.close();
        const failed = await new Ids("none", pool).next().catch((problem) => [problem.name, problem.cause.code]);
        await pool.query("SELECT 1");
        await pool.end();
        await other.end();
        const all = made.filter(Boolean).map(String);
        console.log(JSON.stringify([[all.length, new Set(all).size], ids.counters, failed]));
    """)  # fmt: skip
    assert made[0] == made[1] >= 300
    assert counters["failures"] <= 1 and counters["requests"] >= 3 and failed == ["Refused", "22023"]


def test_a_connection_of_a_pool_that_breaks_at_a_request_in_node(programs, database):
    """A client reports it as an event, which would end the process if nothing listened, and the request is repeated."""
    made, failures, listeners = node(programs, database, """
        const pool = new pg.Pool({ max: 1 });
        const lent = new Set();
        pool.on("acquire", (client) => {
          if (lent.size === 0) setImmediate(() => client.connection.stream.destroy(new Error("EPIPE")));
          lent.add(client);
        });
        const ids = new Ids("twitter", pool, { patience: 60 });
        const made = await ids.take(100);
        await ids.take(100);
        await ids.close();
        const last = await pool.connect();
        console.log(JSON.stringify([new Set(made).size, ids.counters.failures, last.listenerCount("error")]));
        last.release();
        await pool.end();
    """)  # fmt: skip
    assert made == 100 and failures <= 1 and listeners == 0


def test_a_pool_of_java(programs, database):
    """A request leaves a connection of a pool as it was."""
    with contextlib.ExitStack() as ends:
        assert Talking(programs, "java", ends).run(database, "pool") == "[200, true, true, true]\n"
