"""Custom layouts among sessions, databases and transactions."""

import psycopg
import psycopg.types.json
import pytest


def create(db, name, like="twitter", **more):
    definition = psycopg.types.json.Jsonb({"like": like, **more})
    db.execute("SELECT flake_create_layout(%s, %s)", (name, definition))


@pytest.fixture
def two_sessions(server):
    with server.connect() as one, server.connect() as two:
        yield one, two
        one.execute("ROLLBACK; SELECT flake_drop_layout(name) FROM flake_layouts WHERE source = 'custom'")


def epoch(db, name):
    return db.execute("SELECT flake_timestamp(0, %s)", (name,)).fetchone()[0].year


def test_the_next_statement_of_another_session_sees_it(two_sessions):
    one, two = two_sessions
    with pytest.raises(psycopg.errors.InvalidParameterValue):
        epoch(two, "mine")
    create(one, "mine")
    assert epoch(two, "mine") == 2010
    assert two.execute("SELECT flake_next('mine') > 0").fetchone() == (True,)
    one.execute("SELECT flake_drop_layout('mine')")
    for call in ["flake_timestamp(0, 'mine')", "flake_next('mine')"]:
        with pytest.raises(psycopg.errors.InvalidParameterValue):
            two.execute(f"SELECT {call}")
    create(one, "mine", like="si")
    assert epoch(two, "mine") == 2021
    made, = two.execute("SELECT flake_next('mine')").fetchone()
    assert made < 2**53
    # This holds too if another layout was used in between.
    two.execute("SELECT flake_next('twitter'), flake_timestamp(1)")
    one.execute("SELECT flake_drop_layout('mine')")
    two.execute("SELECT flake_timestamp(1)")
    with pytest.raises(psycopg.errors.InvalidParameterValue):
        two.execute("SELECT flake_next('mine')")


def test_a_layout_that_is_not_committed_is_not_seen(two_sessions):
    one, two = two_sessions
    one.execute("BEGIN")
    create(one, "mine")
    assert epoch(one, "mine") == 2010
    with pytest.raises(psycopg.errors.InvalidParameterValue):
        epoch(two, "mine")
    one.execute("ROLLBACK")
    for db in [one, two]:
        with pytest.raises(psycopg.errors.InvalidParameterValue):
            epoch(db, "mine")


def test_prepared_statements_follow_a_changed_layout(two_sessions):
    one, two = two_sessions
    create(one, "mine")
    two.execute("SET plan_cache_mode = force_generic_plan; PREPARE at(bigint, text) AS SELECT flake_timestamp($1, $2)")
    assert two.execute("EXECUTE at(0, 'mine')").fetchone()[0].year == 2010
    one.execute("SELECT flake_drop_layout('mine')")
    create(one, "mine", epoch="2024-01-01T00:00:00Z")
    assert two.execute("EXECUTE at(0, 'mine')").fetchone()[0].year == 2024


def test_one_name_stands_for_two_layouts_in_two_databases(server):
    for database, like, year in [("one", "twitter", 2010), ("two", "si", 2021)]:
        server.sql(f"CREATE DATABASE {database}")
        with server.connect(dbname=database) as db:
            db.execute("CREATE EXTENSION flake")
            create(db, "mine", like=like)
            assert epoch(db, "mine") == year
    with server.connect(dbname="one") as one, server.connect(dbname="two") as two:
        made = [db.execute("SELECT flake_next('mine')").fetchone()[0] for db in [one, two]]
        assert made[0] > 2**53 > made[1]
        one.execute("SELECT flake_drop_layout('mine')")
        assert epoch(two, "mine") == 2021


def fields_of(db, layout, **first):
    """The fields of a layout with these fields above another layout's."""
    fields, = db.execute("SELECT fields FROM flake_layouts WHERE name = %s", (layout,)).fetchone()
    return [first, *fields]


def test_layouts_that_make_the_same_numbers_share_their_state(two_sessions):
    """A reserved bit of value 0 above the fields, or another name, does not make IDs different."""
    db, _ = two_sessions
    padding = fields_of(db, "twitter", name="zero", bits=1, role="reserved", value=0)
    create(db, "padded", fields=padding)
    made = db.execute("""
        SELECT flake_next('twitter'), flake_next('padded'), flake_next('leaf') FROM generate_series(1, 5000)""").fetchall()
    assert len({id for row in made for id in row}) == 15_000


def test_a_layout_that_may_make_the_ids_of_another_one_is_reported(two_sessions):
    db, _ = two_sessions
    warnings = []
    db.add_notice_handler(lambda notice: warnings.append(notice.message_primary))
    fields = [{"name": role, "bits": bits, "role": role} for role, bits in [("timestamp", 41), ("tag", 10), ("sequence", 12)]]
    create(db, "tagged", fields=fields)
    assert warnings == ['layout "tagged" can make the same IDs as twitter, leaf']
    create(db, "other_epoch", fields=fields, epoch="2024-01-01T00:00:00Z")
    create(db, "another_name")
    assert len(warnings) == 1


def test_another_name_for_its_bits_does_not_lift_the_limits_of_a_layout(two_sessions):
    """One layout is read-only, and one has ended; other layouts have the same bits."""
    db, _ = two_sessions
    create(db, "copy", like="pgedge")
    db.execute("SELECT flake_next('copy')")
    for call in "flake_next('pgedge')", "flake_batch('pgedge', 2)":
        with pytest.raises(psycopg.errors.InvalidParameterValue, match="cannot make IDs"):
            db.execute(f"SELECT {call}")
    epoch, = db.execute("SELECT to_char(now() AT TIME ZONE 'UTC' - interval '10 s', 'YYYY-MM-DD\"T\"HH24:MI:SSZ')").fetchone()
    for name, bits in [("ended", 1), ("lasting", 30)]:
        fields = [{"name": role, "bits": bits, "role": role} for role, bits in [("timestamp", bits), ("sequence", 20)]]
        create(db, name, fields=fields, epoch=epoch, tick="1s")
    for layout in "ended", "lasting", "ended":
        if layout == "lasting":
            db.execute("SELECT flake_next('lasting')")
        else:
            with pytest.raises(psycopg.errors.SequenceGeneratorLimitExceeded):
                db.execute("SELECT flake_next('ended')")


def test_a_session_does_not_wait_for_the_end_of_a_long_tick(two_sessions):
    db, _ = two_sessions
    create(db, "years", tick="1000000000s", epoch="2020-01-01T00:00:00Z")
    with pytest.raises(psycopg.errors.ObjectNotInPrerequisiteState, match="too far away") as error:
        db.execute("SELECT flake_next('years')")
    assert "The next one begins at 2051" in error.value.diag.message_detail
    # It waits for shorter ones.
    create(db, "seconds", tick="2s", epoch="2020-01-01T00:00:00Z")
    assert db.execute("SELECT flake_next('seconds') > 0").fetchone() == (True,)


def test_parallel_workers_know_custom_layouts(server):
    with server.connect() as db:
        create(db, "mine")
        db.execute("CREATE TABLE rows AS SELECT flake_next('mine') AS id FROM generate_series(1, 50000)")
        db.execute("ANALYZE rows; ALTER TABLE rows SET (parallel_workers = 2)")
        db.execute("SET max_parallel_workers_per_gather = 0")
        query = "SELECT sum(hashtext(flake_to_text(id, 'mine'))), max(flake_timestamp(id, 'mine')) FROM rows"
        alone = db.execute(query).fetchone()
        db.execute("RESET max_parallel_workers_per_gather; SET parallel_setup_cost = 0; SET parallel_tuple_cost = 0")
        db.execute("SET min_parallel_table_scan_size = 0")
        plan = "\n".join(line for line, in db.execute("EXPLAIN (ANALYZE) " + query))
        assert "Workers Launched: 2" in plan, plan
        assert db.execute(query).fetchone() == alone
        db.execute("SELECT flake_drop_layout('mine'); DROP TABLE rows")
