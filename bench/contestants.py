"""Ways to make an ID in PostgreSQL, each with a table that uses it."""

import pathlib
from dataclasses import dataclass


@dataclass(frozen=True)
class Contestant:
    """`key` names its table, `call` makes an ID, `setup` what that needs."""

    key: str
    label: str
    call: str
    type: str = "bigint"
    setup: str = ""
    extension: str = ""
    """An extension that has to be installed."""
    insert: str = ""
    """Inserts {rows} rows into {table}, where that is not by the default of its ID."""
    ours: bool = False
    more: str = ""
    """More of the table {table}, which the others have no need of."""

    @property
    def is_call(self):
        """Whether it is another way to make an ID in a query."""
        return not (self.insert or self.more)

    @property
    def table(self):
        return f"of_{self.key}"

    def create(self):
        table = f"CREATE TABLE {self.table} (id {self.type} PRIMARY KEY DEFAULT {self.call}, n bigint)"
        return f"{self.setup}; {table}; {self.more.format(table=self.table)}"

    def fill(self, rows):
        statement = self.insert or "INSERT INTO {table} (n) SELECT n FROM generate_series(1, {rows}::bigint) n"
        return statement.format(table=self.table, rows=rows)


# Two recipes as people copy them, in our words. Instagram's: milliseconds, a number of the shard, and a sequence modulo 1024.
INSTAGRAM = """
    CREATE SEQUENCE instagram_numbers;
    CREATE FUNCTION instagram_recipe() RETURNS bigint LANGUAGE plpgsql AS $$
    DECLARE
        shard constant bigint := 5;
        passed bigint;
        number bigint;
    BEGIN
        SELECT nextval('instagram_numbers') % 1024 INTO number;
        SELECT floor(extract(epoch FROM clock_timestamp()) * 1000) INTO passed;
        RETURN ((passed - 1314220021721) << 23) | (shard << 10) | number;
    END $$"""
# Mastodon's: milliseconds, and 16 bits of a digest of table, salt and millisecond, moved on by a sequence.
MASTODON = """
    CREATE SEQUENCE mastodon_numbers;
    CREATE FUNCTION mastodon_recipe(of_table text) RETURNS bigint LANGUAGE plpgsql AS $$
    DECLARE
        stamp bigint;
        digest bigint;
    BEGIN
        stamp := (date_part('epoch', now()) * 1000)::bigint << 16;
        digest := ('x' || substr(md5(of_table || '3c0f9b1a7d' || stamp::text), 1, 4))::bit(16)::bigint;
        RETURN stamp | ((digest + nextval('mastodon_numbers')) & 65535);
    END $$"""

# flake in plain SQL, beside the extension, and within the transaction that makes the contestants.
MANAGED = (pathlib.Path(__file__).parents[1] / "managed/flake.sql").read_text()
MANAGED = MANAGED.replace("\nBEGIN;\n", "\nCREATE SCHEMA managed;\nSET LOCAL search_path = managed;\n").replace("\nCOMMIT;\n", "")
MANAGED += ";\nSET LOCAL search_path = public"

ALL = [
    Contestant("flake", "flake_next('twitter')", "flake_next('twitter')", ours=True),
    Contestant("batch", "flake_batch('twitter', n)", "flake_next('twitter')", ours=True,
               insert="INSERT INTO {table} SELECT * FROM flake_batch('twitter', {rows}) WITH ORDINALITY"),
    Contestant("sno", "sno_next()", "sno_next()", "sno", ours=True),
    Contestant("managed", "flake in plain SQL", "managed.flake_next('twitter')", setup=MANAGED, ours=True),
    Contestant("bigserial", "nextval() (bigserial)", "nextval('numbers')", setup="CREATE SEQUENCE numbers"),
    Contestant("timed", "bigserial, created_at and its index", "nextval('timed_numbers')", setup="CREATE SEQUENCE timed_numbers",
               more="ALTER TABLE {table} ADD created_at timestamptz NOT NULL DEFAULT now(); "
                    "CREATE INDEX ON {table} (created_at)"),
    Contestant("cached", "nextval() with CACHE 32", "nextval('cached_numbers')",
               setup="CREATE SEQUENCE cached_numbers CACHE 32"),
    Contestant("uuid4", "gen_random_uuid()", "gen_random_uuid()", "uuid"),
    Contestant("uuid7", "uuidv7()", "uuidv7()", "uuid"),
    Contestant("instagram", "PL/pgSQL as Instagram's", "instagram_recipe()", setup=INSTAGRAM),
    Contestant("mastodon", "PL/pgSQL as Mastodon's", "mastodon_recipe('posts')", setup=MASTODON),
    Contestant("pg_uuidv7", "uuid_generate_v7() (pg_uuidv7)", "uuid_generate_v7()", "uuid", extension="pg_uuidv7"),
    Contestant("ulid", "gen_monotonic_ulid() (pgx_ulid)", "gen_monotonic_ulid()", "ulid", extension="ulid"),
    Contestant("pgedge", "snowflake.nextval() (pgEdge)", "snowflake.nextval('pgedge_numbers')",
               setup="CREATE SEQUENCE pgedge_numbers", extension="snowflake"),
    Contestant("snowid", "snowid_generate(1) (pg_snowid)", "snowid_generate(1)", extension="pg_snowid"),
]  # fmt: skip


def present(db):
    """The contestants that this server has, made ready; and the names of the others."""
    here, missing = [], []
    for contestant in ALL:
        try:
            with db.transaction():
                if contestant.extension:
                    db.execute(f"CREATE EXTENSION IF NOT EXISTS {contestant.extension}")
                db.execute(contestant.create())
                db.execute(f"SELECT {contestant.call}")
            here.append(contestant)
        except db.Error as error:
            missing.append((contestant.label, str(error).splitlines()[0]))
    return here, missing
