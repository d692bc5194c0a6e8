"""SQLAlchemy's suite for dialects: with the path, all tests pass but those that want small keys. It makes tables itself, so an
event trigger adopts each new one by the procedure of the page. Their integers are bigint."""

import re
import sys

import pytest
from application import APPLICATIONS, Application, of_page, report

PACKAGES = APPLICATIONS / "python"
pytestmark = pytest.mark.skipif(not (PACKAGES / "sqlalchemy").is_dir(), reason="SQLAlchemy is not there")
PARTS = ["insert", "sequence", "cte", "update_delete", "results", "rowcount", "select"]
# As its README tells those who write dialects.
FILES = {
    "conftest.py": """
import pytest
pytest.register_assert_rewrite("sqlalchemy.testing.assertions")
from sqlalchemy.testing.plugin.pytestplugin import *
""",
    "requirements.py": """
from sqlalchemy.testing import exclusions
from sqlalchemy.testing.requirements import SuiteRequirements
class Requirements(SuiteRequirements):
    sequences = sequences_optional = insert_returning = multivalues_inserts = property(lambda self: exclusions.open())
    identity_columns = insert_from_select = ctes = update_returning = delete_returning = sequences
    insert_executemany_returning = autoincrement_insert = empty_inserts_executemany = update_from = sequences
    ctes_on_dml = foreign_keys_reflect_as_index = sequences
    foreign_keys_reflect_as_index = property(lambda self: exclusions.closed())
""",
    "setup.cfg": "[sqla_testing]\nrequirement_cls=requirements:Requirements\nprofile_file=profiles.txt\n[db]\n",
    "test_suite.py": "\n".join([
        "import sqlalchemy", "sqlalchemy.Integer = sqlalchemy.BigInteger",
        *(f"from sqlalchemy.testing.suite.test_{part} import *" for part in PARTS),
    ]),
}
# These want the keys 1, 2 and so on.
DIFFERENT = {
    "test_autoincrement_with_identity", "test_autoincrement_on_insert", "test_autoincrement_on_insert_implicit_returning",
    "test_imv_returning_datatypes", "test_insert_w_floats", "test_optional_seq", "test_roundtrip_fetchall",
    "test_roundtrip_fetchmany",
}  # fmt: skip
TRIGGER = """
CREATE TABLE kept.adopted (relation regclass);
CREATE FUNCTION kept.new_table() RETURNS event_trigger LANGUAGE plpgsql AS $$
DECLARE made record; undo text;
BEGIN
    FOR made IN SELECT objid FROM pg_event_trigger_ddl_commands()
                WHERE object_type = 'table' AND schema_name !~ '^pg_temp|^kept$' LOOP
        IF {adopts} AND EXISTS (SELECT FROM kept.flake_candidates
                                WHERE relation = made.objid AND column_name IS NOT NULL AND obstacle IS NULL) THEN
            CALL kept.flake_adopt(made.objid, 'twitter', undo);
            INSERT INTO kept.adopted VALUES (made.objid);
        END IF;
    END LOOP;
END $$;
CREATE EVENT TRIGGER new_table ON ddl_command_end WHEN TAG IN ('CREATE TABLE') EXECUTE FUNCTION kept.new_table();
"""


def run(server, directory, adopts):
    """Returns what each test has come to."""
    application = Application(server, "sqlalchemy")
    # The suite drops all views of the schemas that it knows.
    application.sql("CREATE SCHEMA kept")
    for extension in "flake", "flake_sequences":
        application.sql(of_page(f"CREATE EXTENSION {extension};").replace(";", " SCHEMA kept"))
    application.sql(TRIGGER.format(adopts=adopts))
    application.sql("CREATE SCHEMA test_schema")
    if adopts == "true":
        application.sql(f"ALTER DATABASE {application.name} SET search_path = public, flake_sequences, pg_catalog")
    uri = f"postgresql+psycopg://postgres@/{application.name}?host={server.dir}"
    options = ["-p", "no:cacheprovider", "-q", "-rA", "--tb=short", "-n", "0", "--dburi", uri]
    command = [sys.executable, "-m", "pytest", *options, "test_suite.py"]
    printed = application.run(
        "bash", "-c", '"$@" || true', "bash", *command, cwd=directory, environment={"PYTHONPATH": str(PACKAGES)}
    )  # fmt: skip
    found = {test: outcome for outcome, test in re.findall(r"^(PASSED|FAILED|ERROR) (\S+)", printed, re.M)}
    assert found, printed[-3000:]
    return found, application.sql("SELECT count(*) FROM kept.adopted")[0][0], printed


def test_its_suite_notices_nothing(server, tmp_path):
    for name, text in FILES.items():
        (tmp_path / name).write_text(text)
    before, none, _ = run(server, tmp_path, "false")
    after, tables, printed = run(server, tmp_path, "true")
    assert before.keys() == after.keys()
    different = {test for test in before if before[test] != after[test]}
    assert {re.search(r"::(test_\w+)", test)[1] for test in different} == DIFFERENT, printed[-6000:]
    assert {before[test] for test in different} == {"PASSED"}
    assert none == 0 and tables > 10 and len(after) > 200
    report("SQLAlchemy", tests=len(after), as_before=len(after) - len(different), tables=tables)
