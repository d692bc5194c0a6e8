"""TypeORM and Knex, whose keys are adopted as docs/how-to/adopt.md tells: they notice nothing."""

import pytest

from adopting import PATH
from database import database, server_of_clients

__all__ = ["database", "server_of_clients"]


@pytest.mark.parametrize("path", [False, True], ids=["without the path", "with the path"])
def test_typeorm_and_knex_notice_nothing(database, path):
    # TypeORM's synchronize compares defaults, so it needs the path.
    look = ["look"] * path
    database.node("adopted.mjs", "create")
    before = database.node("adopted.mjs", "use", *look)
    assert "TypeORM 20 20" in before and "Knex by Knex 1" in before
    database.sql("CREATE EXTENSION flake_sequences")
    database.sql("CALL flake_adopt_schema('public', 'si')")
    if path:
        database.sql(f"ALTER DATABASE {database.name} SET search_path = {PATH}")
        assert "would run 0" in before
    assert database.node("adopted.mjs", "use", *look) == before
    assert database.sql("SELECT count(*) FROM posts WHERE id > 1e12") == [(20,)]
