"""An adopted sequence keeps its step and its kind, a call keeps no lock, and flake_candidates names the obstacles of tables."""

import psycopg
import pytest

from adopting import IS_ID, LARGE, ORDERS, PATH, RANGE, adopt, db, is_closed, one, server, state
from waiting import Waiting

__all__ = ["db", "server"]

# Layouts whose IDs leave 64 numbers free, and one that needs a tag.
BLOCKS = """SELECT flake_create_layout('blocks', '{"like": "twitter", "fields": [
    {"name": "timestamp", "bits": 41, "role": "timestamp"}, {"name": "worker", "bits": 10, "role": "worker"},
    {"name": "sequence", "bits": 5, "role": "sequence"}, {"name": "block", "bits": 7, "role": "reserved", "value": 64}]}')"""
TAGGED = """SELECT flake_create_layout('tagged', '{"like": "twitter", "fields": [
    {"name": "timestamp", "bits": 41, "role": "timestamp"}, {"name": "worker", "bits": 10, "role": "worker"},
    {"name": "shard", "bits": 4, "role": "tag"}, {"name": "sequence", "bits": 8, "role": "sequence"}]}')"""
OBSTACLES = "SELECT relation::text, kind, obstacle FROM flake_candidates WHERE column_name IS NOT NULL ORDER BY 1"


@pytest.mark.parametrize("kind", ["orders", "s"])
def test_a_sequence_keeps_its_step(db, kind):
    db.execute(f"{BLOCKS}; {ORDERS}; CREATE SEQUENCE s; SELECT nextval('s')")
    sequence = "s" if kind == "s" else "orders_id_seq"
    db.execute(f"ALTER SEQUENCE {sequence} INCREMENT 65")
    assert "counts by 65" in pytest.raises(psycopg.Error, adopt, db, kind, "blocks").value.diag.message_detail
    # As many as the layout leaves free.
    db.execute(f"ALTER SEQUENCE {sequence} INCREMENT 64")
    last, = one(db, f"SELECT last_value FROM {sequence}")
    undo = adopt(db, kind, "blocks")
    assert one(db, RANGE, sequence)[3] == 64 and undo.endswith(f"next => {last + 64})")
    first, second = (one(db, f"SELECT flake_sequences.nextval('{sequence}')")[0] for _ in range(2))
    assert second - first >= 128
    db.execute(undo)
    assert [one(db, f"SELECT nextval('{sequence}')")[0] for _ in range(2)] == [last + 64, last + 128]


@pytest.mark.parametrize("kind", ["t", "s"])
def test_an_unlogged_sequence_stays_unlogged(db, kind):
    db.execute("CREATE UNLOGGED TABLE t (id bigserial PRIMARY KEY); CREATE UNLOGGED SEQUENCE s")
    sequence = "s" if kind == "s" else "t_id_seq"
    persistence = f"SELECT relpersistence::text FROM pg_class WHERE relname = '{sequence}'"
    undo = adopt(db, kind)
    assert is_closed(db, sequence) and one(db, persistence) == ("u",)
    db.execute(undo)
    assert one(db, persistence) == ("u",)


@pytest.mark.parametrize(("tables", "owner"), [
    ("CREATE TABLE a (id bigint); CREATE TABLE b (id bigint PRIMARY KEY)", "a"),
    ("CREATE TABLE b (id bigint PRIMARY KEY) PARTITION BY RANGE (id); CREATE TABLE part PARTITION OF b DEFAULT", "part"),
])  # fmt: skip
def test_a_sequence_that_another_column_owns_is_refused(db, tables, owner):
    """The new sequence could not be given to that column. flake_adopt_schema leaves the table out."""
    db.execute(f"{tables}; CREATE SEQUENCE s OWNED BY {owner}.id; ALTER TABLE b ALTER id SET DEFAULT nextval('s')")
    obstacle, = one(db, "SELECT obstacle FROM flake_candidates WHERE relation = 'b'::regclass")
    assert obstacle == f"fed by a sequence of other objects: column id of table {owner}"
    error = pytest.raises(psycopg.Error, adopt, db, "b").value.diag
    assert error.sqlstate == "55000" and error.message_detail.endswith(f": column id of table public.{owner}.")
    db.execute("CREATE TABLE c (id bigserial PRIMARY KEY)")
    db.execute("CALL flake_adopt_schema('public', 'twitter')")
    assert is_closed(db, "c_id_seq") and one(db, f"SELECT pg_get_serial_sequence('{owner}', 'id')") == ("public.s",)


@pytest.mark.parametrize("relation", ["orders", "s"])
def test_a_layout_that_needs_a_tag_is_refused(db, relation):
    """Each nextval would raise an error."""
    db.execute(f"{ORDERS}; CREATE SEQUENCE s; {TAGGED}")
    assert state(db, f"CALL flake_adopt('{relation}', 'tagged')") == "22023"
    assert one(db, "SELECT nextval('s')") == (1,)


@pytest.mark.parametrize("relation", ["orders", "s"])
def test_a_layout_that_makes_no_ids_any_more_is_refused(db, relation):
    """Its last tick is over."""
    db.execute(f"{ORDERS}; CREATE SEQUENCE s")
    assert state(db, f"CALL flake_adopt('{relation}', 'baidu')") == "2200H"
    assert one(db, "SELECT nextval('s'), nextval('orders_id_seq')") == (1, 11)


def test_a_sequence_that_a_column_owns_is_adopted_with_its_table_only(db):
    db.execute("CREATE TABLE t (id bigint PRIMARY KEY); CREATE SEQUENCE s OWNED BY t.id")
    error = pytest.raises(psycopg.Error, adopt, db, "s").value
    assert error.diag.message_detail == "A column of table public.t owns it."


def test_a_sequence_that_was_opened_makes_nothing_after_setval(db):
    """setval has not looked at the range."""
    db.execute(ORDERS)
    adopt(db)
    db.execute("ALTER SEQUENCE orders_id_seq NO MAXVALUE")
    db.execute("BEGIN; SELECT flake_sequences.setval('orders_id_seq', 5)")
    assert state(db, IS_ID) == "55000"
    db.execute("ROLLBACK")


def test_an_extension_that_was_created_again_makes_ids(db):
    """A session has used a sequence of the old one for lastval()."""
    db.execute("CREATE SEQUENCE s")
    adopt(db, "s")
    db.execute("SELECT flake_sequences.nextval('s'); DROP EXTENSION flake_sequences; CREATE EXTENSION flake_sequences")
    assert one(db, f"SELECT flake_sequences.nextval('s') > {LARGE}") == (True,)
    assert one(db, f"SELECT lastval() > {LARGE}") == (True,)


@pytest.mark.parametrize(("relation", "sequence"), [("orders", "orders_id_seq"), ("s", "s")])
def test_a_release_waits_for_whoever_asks_for_ids(server, db, relation, sequence):
    """Later IDs of its transaction are below the number that the sequence continues with, too."""
    db.execute(f"{ORDERS}; CREATE SEQUENCE s")
    adopt(db, relation)
    with server.session(dbname="test") as other:
        other.execute(f"BEGIN; SELECT flake_sequences.nextval('{sequence}')")
        waiting = Waiting(server, db, lambda db: db.execute(f"CALL flake_release('{relation}')"))
        other.execute("SELECT pg_sleep(0.01)")
        asked, = one(other, f"SELECT max(flake_sequences.nextval('{sequence}')) FROM generate_series(1, 5)")
        other.execute("COMMIT")
        waiting.end()
    assert one(db, f"SELECT nextval('{sequence}')")[0] > asked


@pytest.mark.parametrize("change", ["TRUNCATE orders", "LOCK TABLE orders", "ALTER TABLE orders ADD w int"])
def test_an_application_that_has_read_the_table_may_change_it(server, db, change):
    """A lock from the first look at the keys, beside the one that the call waits for, would end its transaction as a deadlock."""
    db.execute(ORDERS)
    with server.session(dbname="test") as other:
        other.execute("BEGIN; SELECT FROM orders")
        waiting = Waiting(server, db, adopt)
        other.execute(f"{change}; COMMIT")
        waiting.end()
    assert is_closed(db)


# Tables and their columns.


def test_a_default_of_a_part_is_its_own(db):
    """ALTER TABLE of the parent would give it the parent's sequence. It is older than the parent, so it comes first."""
    db.execute("""CREATE TABLE part (id bigserial, v int); CREATE TABLE parts (id bigserial, v int) PARTITION BY RANGE (v);
        ALTER TABLE parts ATTACH PARTITION part DEFAULT""")
    db.execute("CALL flake_adopt_schema('public', 'twitter')")
    for table in ("part", "parts"):
        default = f"SELECT pg_get_expr(adbin, adrelid) FROM pg_attrdef WHERE adrelid = '{table}'::regclass"
        assert one(db, default) == (f"flake_sequences.nextval('{table}_id_seq'::regclass)",)


def test_candidates_name_what_stands_in_the_way(db):
    db.execute("""
        CREATE TABLE a_small (id smallserial PRIMARY KEY); CREATE TABLE b_wide (id bigserial PRIMARY KEY);
        CREATE TABLE b_1 (o smallint REFERENCES b_wide); CREATE TABLE b_2 (o int REFERENCES b_wide);
        CREATE TABLE b_3 (o bigint REFERENCES b_wide);
        CREATE DOMAIN number AS bigint; CREATE SEQUENCE c;
        CREATE TABLE c_domain (id number PRIMARY KEY DEFAULT nextval('c'));
        CREATE TABLE d_fifty (id bigserial PRIMARY KEY); ALTER SEQUENCE d_fifty_id_seq INCREMENT 50;
        CREATE TABLE e_keyless (id bigserial); CREATE TABLE f_double (id bigserial, v int, PRIMARY KEY (id, v));
        CREATE TABLE g_more (id bigserial PRIMARY KEY); ALTER TABLE g_more ALTER id SET DEFAULT nextval('g_more_id_seq') + 1;
        CREATE TABLE h_parts (id bigserial PRIMARY KEY) PARTITION BY HASH (id);
        CREATE TABLE h_part PARTITION OF h_parts FOR VALUES WITH (MODULUS 1, REMAINDER 0);
        CREATE TABLE i_shared (id bigserial PRIMARY KEY); CREATE TABLE i_view_of (v bigint DEFAULT nextval('i_shared_id_seq'))""")
    found = {relation: (kind, obstacle and obstacle.split(": ")[0]) for relation, kind, obstacle in db.execute(OBSTACLES)}
    assert found == {
        "a_small": ("serial", "of type smallint, and 0 columns that refer to it are too small"),
        "b_wide": ("serial", "of type bigint, and 2 columns that refer to it are too small"),
        "c_domain": ("default", None), "d_fifty": ("serial", "counted by 50"),
        "e_keyless": ("serial", "not a primary key of one column"), "f_double": ("serial", "not a primary key of one column"),
        "g_more": ("serial", "the default is an expression"), "h_parts": ("serial", None),
        "i_shared": ("serial", "fed by a sequence of other objects"), "i_view_of": ("default", "not a primary key of one column"),
    }  # fmt: skip
    # flake_adopt takes the tables without an obstacle.
    for relation in ("c_domain", "h_parts"):
        adopt(db, relation)
        assert one(db, f"INSERT INTO {relation} DEFAULT VALUES RETURNING id > {LARGE}") == (True,)
    assert {"c_domain", "h_parts"}.isdisjoint(relation for relation, *_ in db.execute(OBSTACLES))


def test_free_candidates_are_those_of_applications(db):
    """The page adopts each of them."""
    db.execute("""CREATE SEQUENCE s; CREATE TEMP SEQUENCE temporary; CREATE SEQUENCE owned;
        CREATE TABLE t (id bigint); ALTER SEQUENCE owned OWNED BY t.id; CREATE SEQUENCE extended;
        ALTER EXTENSION flake_sequences ADD SEQUENCE extended; CREATE SEQUENCE others; ALTER SEQUENCE others OWNER TO keeper;
        CREATE SEQUENCE adopted; CALL flake_adopt('adopted', 'si')""")
    free = "SELECT sequence::text FROM flake_candidates WHERE kind = 'free' ORDER BY 1"
    assert db.execute(free).fetchall() == [("others",), ("s",)]
    db.execute("SET ROLE keeper")
    assert db.execute(free).fetchall() == [("others",)]


def test_tables_of_extensions_and_sessions_keep_their_defaults(db):
    """pg_dump leaves out what an extension has, and a changed default would be lost."""
    db.execute("""CREATE TABLE extended (id serial); ALTER EXTENSION flake_sequences ADD TABLE extended;
        CREATE TEMP TABLE temporary (id serial); CREATE TABLE own (id serial)""")
    assert db.execute("SELECT relation::text FROM flake_unrouted").fetchall() == [("own",)]
    db.execute("CREATE FUNCTION nextval(regclass) RETURNS bigint LANGUAGE sql AS 'SELECT 1'")
    db.execute("SET search_path = public, pg_catalog; CREATE TABLE planted (id bigint DEFAULT nextval('own_id_seq'))")
    assert db.execute("SELECT relation::text FROM flake_unrouted").fetchall() == [("own",)]
    db.execute(f"SET search_path = {PATH}")
    assert db.execute("SELECT relation::text FROM flake_unrouted").fetchall() == [("own",)]
