"""pg_dump and pg_restore: a restored database is whole, by whatever way. On a server that does not know its IDs,
flake_start_above keeps them from being made again."""

import psycopg
import pytest

import everything
from clients import Made
from standing_clock import SETTINGS, at, insert, pass_through, running

# Returns the statements that recreate the layouts of the original.
LAYOUTS = """
    SELECT format('SELECT flake_create_layout(%L, %L)', srvname, option_value)
    FROM pg_foreign_server, pg_options_to_table(srvoptions) WHERE option_name = 'definition'"""


def dump(server, path, *options):
    server.run("pg_dump", "-f", path, *options)
    return path


def restore(server, path, *options):
    server.run("pg_restore", "--exit-on-error", "-d", "postgres", *options, path)


# The ways to dump and restore.


def in_parallel(original, server, path):
    restore(server, dump(original, path, "-Fd", "-j4"), "-j4")


def by_sections(original, server, path):
    """Restores each section alone, as one does to load the data before the indexes are built."""
    dump(original, path, "-Fd", "-j4")
    for section in ["pre-data", "data", "post-data"]:
        restore(server, path, f"--section={section}", "-j4")


def dumped_by_sections(original, server, path):
    for section in ["pre-data", "data", "post-data"]:
        restore(server, dump(original, f"{path}.{section}", "-Fc", f"--section={section}"), "-j4")


def without_the_extension(original, server, path):
    """A dump of some schemas or tables contains neither the extension nor the layouts, which must exist before."""
    dump(original, path, "-Fd", "-j4", "--schema=public")
    server.sql("CREATE EXTENSION flake; CREATE EXTENSION flake_sequences")
    for statement, in original.sql(LAYOUTS):
        server.sql(statement)
    restore(server, path, "--schema=public", "-j4")


@pytest.fixture
def original(own_servers):
    """A server that has made IDs at 60, the content of its tables, and those IDs."""
    server, made = everything.server_with_everything(own_servers)
    server.set_clock(at(60))
    insert(server, made)
    with server.connect() as db:
        # A restore does this too.
        db.execute("REFRESH MATERIALIZED VIEW latest")
        return server, everything.seen(db), made


@pytest.fixture
def empty(own_servers):
    """A server without the extension, whose clock is at 0."""
    return own_servers(*SETTINGS, extension=False, clock=at(0))


WAYS = [in_parallel, by_sections, dumped_by_sections, without_the_extension]


@pytest.mark.parametrize("way", WAYS, ids=lambda way: way.__name__)
def test_a_dump_restored_elsewhere_is_whole_and_makes_no_id_twice(original, empty, tmp_path, way):
    server, before, made = original
    way(server, empty, tmp_path / "dump")
    everything.assert_whole(empty, before, catalog=way is not without_the_extension)
    empty.set_clock(running(0))
    empty.sql("SELECT flake_start_above(max(twitter), 'twitter', force => true) FROM kept")
    pass_through(empty, made, 0, 60)
    everything.assert_well(empty)


def test_without_start_above_a_restored_server_would_repeat_ids(original, empty, tmp_path):
    """Without flake_start_above, IDs repeat when the clock comes to the time of the original's IDs."""
    server, _, made = original
    in_parallel(server, empty, tmp_path / "dump")
    empty.set_clock(at(60))
    again = Made(everything.KINDS)
    with pytest.raises(psycopg.errors.UniqueViolation):
        insert(empty, again)
    pass_through(empty, again, 60)
    assert again.common(made) == set(everything.KINDS)
