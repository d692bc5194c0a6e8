"""An upgrade from PostgreSQL 15 to 18 without downtime, by logical replication. Clients write all the time; they switch to the
new server, back, and to the new one again. Commands and settings come from docs/how-to/logical-replication.md."""

import time

import psycopg
import pytest

import writers
from replication import connected, execute, recipe, settings
from test_upgrades import pg_config
from waiting import Background, wait_until

HEADING = "Upgrade without a stop"
COPY, LEAVE, ABOVE, COME, END = recipe(HEADING, "bash")
SUBSCRIBER, = recipe("A standby becomes the new server", "bash")
CLIENTS = 8
# For how many seconds writes may be refused: until the rows have arrived, and with one number also until the mark has passed.
OWN, ONE = LIMITS = {"own number": 2, "one number": 5}


class Pair:
    """The server before the upgrade, and the one after it."""

    def __init__(self, own_servers, kind, behind=0, **table):
        # With one number, both servers have the default settings, as most have that are upgraded alone.
        numbers = [settings(HEADING, number) if kind == OWN else ["wal_level=logical"] for number in range(2)]
        self.kind = kind
        self.old = own_servers(*numbers[0], clock="+0", pg_config=pg_config("15"))
        self.new = own_servers(*numbers[1], clock=f"-{behind}", pg_config=pg_config("18"), extension=False)
        self.old.sql(f"CREATE ROLE app LOGIN; {writers.orders(**table)}")

    def run(self, *commands, **variables):
        places = {"OLD": connected(self.old), "NEW": connected(self.new), "DUMP": str(self.new.dir / "dump.sql")}
        execute(self.old, *commands, **places, **variables)

    def switch(self, of, to, commands=None):
        commands = commands or ([LEAVE, ABOVE, COME] if self.kind == ONE else [LEAVE, COME])
        self.run(*commands, FROM=connected(of), TO=connected(to))


def check(server, row):
    """Returns whether flake_check finds nothing wrong there, and what it prints."""
    return server.sql('SELECT ok, detail FROM flake_check() WHERE name = %s', row)[0]


def await_rows(of):
    """Waits until the other server has everything that this one has committed so far."""
    upto = of.value("SELECT pg_logical_emit_message(true, 'test', '')::text")
    wait_until(lambda: of.value("SELECT confirmed_flush_lsn > %s::pg_lsn FROM pg_replication_slots", upto))


def used(clients, server):
    """Returns the ticks in which IDs were made there, each with its node."""
    count = server.value("SELECT node_count FROM flake_stat")
    return {((id >> 12 & 1023) * count >> 10, id >> 22) for batch in clients.of(server) for id in batch.ids}


# If the new server has a number of its own, its clock may be wrong.
@pytest.mark.parametrize("kind, behind", [(OWN, 5), (ONE, 1)], ids=LIMITS)
def test_an_upgrade_there_and_back_loses_no_row_and_makes_no_id_twice(own_servers, kind, behind):
    pair = Pair(own_servers, kind, behind)
    with writers.Writers(*[[pair.old, pair.new]] * CLIENTS) as clients:
        clients.wait_for_all(pair.old)
        pair.run(COPY)
        for of, to in [(pair.old, pair.new), (pair.new, pair.old), (pair.old, pair.new)]:
            clients.wait_for_all(of)
            assert {check(server, "node number")[0] for server in (of, to)} == {kind == OWN}
            pair.switch(of, to)
        clients.wait_for_all(pair.new)
    await_rows(pair.new)
    refused = clients.refused()
    print(f"{kind}: {clients.made()} IDs, {clients.twice()} twice, refused for {[f'{one:.1f} s' for one in refused]}")
    assert clients.twice() == 0
    clients.assert_whole(pair.old, pair.new)
    assert used(clients, pair.old).isdisjoint(used(clients, pair.new))
    # A busy machine may take longer at times.
    assert len(refused) == 3 and min(refused) < LIMITS[kind]
    pair.run(END)
    assert check(pair.old, "node number")[0] and check(pair.new, "node number")[0]


def test_rows_that_come_late_are_waited_for(own_servers):
    """No client may use the new server before the rows have arrived."""
    pair = Pair(own_servers, OWN)
    pair.run(COPY)
    pair.old.sql("INSERT INTO orders (token) VALUES (1)")
    await_rows(pair.old)
    with pair.new.connect() as db:
        db.execute("BEGIN; LOCK TABLE orders")
        pair.old.sql("INSERT INTO orders (token) VALUES (2)")
        with Background(lambda: pair.switch(pair.old, pair.new, [LEAVE])) as leaving:
            time.sleep(1)
            assert leaving.threads[0].is_alive()
            db.execute("COMMIT")
    assert pair.new.value("SELECT count(*) FROM orders") == 2


def test_a_sequence_repeats_keys(own_servers):
    """The control: a sequence starts again on the new server, and repeats keys."""
    pair = Pair(own_servers, OWN, id="bigserial")
    pair.old.sql("GRANT USAGE ON orders_id_seq TO app")
    with pytest.raises(psycopg.errors.UniqueViolation), writers.Writers(*[[pair.old, pair.new]] * CLIENTS) as clients:
        clients.wait_for_all(pair.old)
        pair.run(COPY)
        pair.switch(pair.old, pair.new)
        wait_until(lambda: clients.failures)


def test_with_one_number_a_clock_that_is_far_behind_is_noticed(own_servers):
    """With one number, clients come when the new server is above the old one, and the server says how far its IDs lead."""
    pair = Pair(own_servers, ONE, behind=20)
    with writers.Writers([pair.old, pair.new]) as clients:
        clients.wait_for_all(pair.old)
        pair.run(COPY)
        with pytest.raises(AssertionError, match="ahead of the clock"):
            pair.switch(pair.old, pair.new)
        made = clients.made()
        for server in (pair.old, pair.new):
            with pytest.raises(psycopg.OperationalError, match="not permitted to log in"):
                server.connect(user="app")
        pair.switch(pair.old, pair.new, [ABOVE.replace("'twitter')\"\n", "'twitter', force => true)\"\n")])
        is_well, detail = check(pair.new, "lead")
        assert not is_well and "IDs lead the clock by 2" in detail
        pair.new.set_clock("-1")
        pair.switch(pair.old, pair.new, [ABOVE, COME])
        assert clients.made() == made
        clients.wait_for_all(pair.new)
    await_rows(pair.new)
    assert clients.twice() == 0
    clients.assert_whole(pair.old, pair.new)


@pytest.mark.parametrize("kind", LIMITS)
def test_a_standby_becomes_the_new_server_and_makes_no_id_twice(own_servers, kind):
    """The new server does not know what the old one uses later. Another number or turn keeps their IDs apart."""
    program = pg_config("18")
    old_number, new_number = (settings(HEADING, number) if kind == OWN else ["wal_level=logical"] for number in range(2))
    old = own_servers(*old_number, clock="+100", pg_config=program)
    old.sql(f"CREATE ROLE app LOGIN; {writers.orders()}")
    new = own_servers(*new_number, standby_of=old, pg_config=program)
    places = {"OLD": connected(old), "NEW": connected(new), "FROM": connected(old), "TO": connected(new)}
    with writers.Writers(*[[old, new]] * CLIENTS) as clients:
        clients.wait_for_all(old)
        execute(new, SUBSCRIBER, PGDATA=str(new.dir / "data"), **places)
        old.set_clock("+200")
        clients.wait_for_all(old)
        new.sql("SELECT flake_next('twitter')")
        number = 1 if kind == OWN else 0
        # IDs lead the clock to what the old server had reserved when the new one parted from it, not to what it uses later.
        leads = "SELECT node_id, lead > '0 s' AND lead < '150 s' FROM flake_stat"
        assert new.sql(leads) == [(number, True)]
        execute(new, LEAVE, COME, **places)
        clients.wait_for_all(new)
    await_rows(new)
    assert clients.twice() == 0
    clients.assert_whole(old, new)
