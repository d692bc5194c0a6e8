"""Django's own tests of inserts, sequences, relations and fixtures: with the path, all pass but a few that cannot."""

import re
import sys

import pytest
from application import APPLICATIONS, HERE, Application, of_page, report

TESTS = APPLICATIONS / "django-tests"
PARTS = [
    "basic", "bulk_create", "backends.postgresql", "backends.base.test_operations", "backends.tests", "delete", "fixtures",
    "force_insert_update", "get_or_create", "introspection", "m2m_through", "many_to_many", "many_to_one",
    "model_inheritance", "multiple_database", "one_to_one", "transactions", "update",
]  # fmt: skip
# Models of these tests have keys of others in fields that hold integers only, and one wants the key 1.
DIFFERENT = {
    "test_custompk_m2m", "test_execute_sql_flush_statements", "test_generic_key_cross_database_protection",
    "test_generic_key_deletion", "test_generic_key_managers", "test_generic_key_reverse_operations",
    "test_generic_key_separation", "test_restrict_gfk_no_fast_delete",
}  # fmt: skip
# It dumps rows in the order in which Python's set of their keys has inserted them.
MAY_DIFFER = {"test_forward_reference_m2m_natural_key"}
pytestmark = pytest.mark.skipif(not TESTS.is_dir(), reason="Django's tests are not there and could not be had")


def run(application, **environment):
    """Returns how many tests have run, what has failed, and what was adopted."""
    path = f"{HERE}:{APPLICATIONS / 'python'}"
    command = [sys.executable, "-W", "ignore", "runtests.py", "--settings=django_settings", "--parallel=1", "--noinput", *PARTS]
    environment |= {"PYTHONPATH": path, "TEMPLATE": application.name}
    printed = application.run("bash", "-c", '"$@" || true', "bash", *command, environment=environment, cwd=TESTS)
    ran = re.search(r"^Ran (\d+) tests", printed, re.M)
    assert ran, printed[-4000:]
    return int(ran[1]), set(re.findall(r"^(?:ERROR|FAIL): (.*)$", printed, re.M)), printed


def test_its_own_tests_notice_nothing(server):
    template = Application(server, "django_template")
    for extension in "flake", "flake_sequences":
        template.sql(of_page(f"CREATE EXTENSION {extension};"))
    count, failed, _ = run(template)
    adopted_count, adopted_failed, printed = run(template, ADOPT="yes")
    assert count == adopted_count > 900
    assert failed <= adopted_failed
    assert {name.split()[0] for name in adopted_failed - failed} - MAY_DIFFER == DIFFERENT
    adopted, = set(re.findall(r"^adopted \w+ (\d+)$", printed, re.M))
    report("Django", tests=count, tables=adopted, as_before=count - len(adopted_failed - failed))
