"""Statements that fail, in sessions that may do nothing else. Such a session must take back what it has registered in shared
memory."""

import psycopg

# The client is not told the IDs that a statement made before it failed.
STATEMENTS = [
    "SELECT flake_next('nothing')", "SELECT flake_next('tagged', 99)", "SELECT flake_next('uniqueid_v3')",
    "SELECT flake_next('narrow')", "SELECT flake_next('narrow')", "SELECT flake_batch('narrow', 3)", "SELECT flake_next('over')",
    "SELECT flake_batch('twitter', -1)", "SELECT sno_next(0, 70000)", "SELECT sno_next(300)", "SELECT 1 / 0",
    "SELECT flake_next('slow') / (3 - n) FROM generate_series(1, 5) n", "SELECT flake_next('leaf') / 0",
    "SELECT sno_next(n) FROM generate_series(252, 260) n", "SELECT flake_start_above(0, 'narrow'), flake_next('narrow')",
    "SELECT flake_cover(0, 'twitter'), 1 / 0", "SELECT flake_cover(flake_max(clock_timestamp()), 'twitter'), 1 / 0",
]  # fmt: skip
ASKING = ["SELECT flake_watermark() - interval '999999 years'", "SELECT flake_watermark(), 1 / (random() * 0)"]
ON_STANDBY = "SELECT flake_publish_watermark()"
# Bad arguments, failed arithmetic, a layout whose time is over, and layouts with too few workers for this configuration.
WRONG = {"22003", "22008", "22012", "22023", "22P02", "2200H", "0A000", "42704", "42883"}


class Failing:
    """Runs failing statements in a client's session."""

    def __init__(self, client):
        self.client = client

    def statement(self):
        client = self.client
        asking = [ON_STANDBY] if client.node.maker.recovers else ASKING if client.node.consumers else []
        statement = client.random.choice(STATEMENTS + asking)
        batch = client.oracle.begin(client.node, client.database, "twitter", "failing")
        with client.watched():
            try:
                client.db.execute(statement)
                if self.has_to_fail(statement, batch):
                    client.oracle.fail(f"{statement} does not fail: {batch}")
            except psycopg.Error as error:
                if error.sqlstate not in WRONG:
                    client.cluster.refusals.judge(client.node, error, statement)
                if client.db.closed or client.db.broken:
                    # A server that is killed right after the error says nothing else.
                    raise psycopg.OperationalError("the connection is lost") from error
                client.db.rollback()
            finally:
                client.oracle.end(batch, client.node)

    def has_to_fail(self, statement, batch):
        """A standby cannot publish a watermark unless it is promoted at that moment. Narrow layouts have too few workers unless
        the number of nodes was lowered."""
        node, maker = self.client.node, batch.makers[0]
        if statement == ON_STANDBY:
            return not node.promoting and node.maker is maker
        return "narrow" not in statement or maker.count >= self.client.cluster.shape.nodes
