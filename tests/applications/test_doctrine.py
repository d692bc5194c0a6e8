"""PDO, Doctrine DBAL and Doctrine ORM of Debian's packages: by lastval(), and by currval and nextval with the path."""

import shutil

import pytest
from application import HERE, LARGE, Application, report

pytestmark = pytest.mark.skipif(not shutil.which("php"), reason="PHP is not there and could not be installed")


def doctrine(application, command, **environment):
    php = ["php", "-d", "error_reporting=E_ALL&~E_DEPRECATED", HERE / "doctrine.php", command]
    return application.run(*php, environment=environment).splitlines()


@pytest.mark.parametrize("layout", ["twitter", "si"])
@pytest.mark.parametrize("path", [False, True], ids=["PDO and DBAL without the path", "ORM with the path"])
def test_doctrine_notices_nothing(server, layout, path):
    settings = {"ORM": "yes"} if path else {}
    native = Application(server, "doctrine")
    doctrine(native, "create")
    adopted = native.adopted(layout, path=path)
    # The sequence of tickets belongs to no column. Without the path it counts on.
    assert sorted(adopted.obstacles) == ["counted"] + ["ticket_numbers"] * (not path)
    before, after = (doctrine(one, "walk", **settings) for one in (native, adopted))
    assert before == after and "PDO lastInsertId: true" in after and "PDO prepared: true" in after, after
    if path:
        assert [doctrine(one, "diff") for one in (native, adopted)] == [[], []]
        assert adopted.sql(f"SELECT min(id) > {LARGE} FROM ticket") == [(True,)]
    assert adopted.dangling() == 0
    ids = adopted.tables_with_ids()
    assert ids == ({"party", "purchase", "article", "notes"} if path else {"notes"})
    report("Doctrine", answers=len(after), tables=len(ids), layout=layout, path=path)
