"""Clients filter a view's created_at with their query builders. The server's log has the plan of the query that they sent."""

import os
import pathlib
import shutil
import subprocess
import sys

import pytest

from conftest import pg_config

# scripts/setup puts clients here that Debian does not package.
CLIENTS = pathlib.Path(os.environ["FLAKE_CLIENTS"])

DJANGO = """
import datetime, os
import django
from django.conf import settings
database = {"ENGINE": "django.db.backends.postgresql", "HOST": os.environ["PGHOST"], "NAME": "postgres", "USER": "postgres"}
settings.configure(DATABASES={"default": database}, USE_TZ=AWARE, TIME_ZONE="UTC")
django.setup()
from django.db import models
class Order(models.Model):
    id = models.BigIntegerField(primary_key=True)
    created_at = models.DateTimeField()
    class Meta:
        managed, db_table, app_label = False, "orders", "shop"
zone = datetime.timezone.utc if AWARE else None
print(Order.objects.filter(created_at__gte=datetime.datetime(2026, 1, 19, tzinfo=zone)).order_by("id").count())
"""
SQLALCHEMY = """
import datetime, os
from sqlalchemy import BigInteger, Column, DateTime, MetaData, Table, create_engine, func, select
orders = Table("orders", MetaData(), Column("id", BigInteger), Column("created_at", DateTime(timezone=AWARE)))
zone = datetime.timezone.utc if AWARE else None
since = select(func.count(orders.c.id)).where(orders.c.created_at >= datetime.datetime(2026, 1, 19, tzinfo=zone))
with create_engine(f"postgresql+psycopg://postgres@/postgres?host={os.environ['PGHOST']}").connect() as db:
    print(db.execute(since).scalar())
"""
NODE = """
const { Client } = require("pg");
(async () => {
  const client = new Client({ host: process.env.PGHOST, user: "postgres", database: "postgres" });
  await client.connect();
  const at = new Date("2026-01-19T00:00:00Z");
  const { rows } = await client.query("SELECT count(id) FROM orders WHERE created_at >= $1", [at]);
  console.log(rows[0].count);
  await client.end();
})();
"""


@pytest.fixture(scope="module")
def server(servers):
    if not (pg_config("--pkglibdir") / "auto_explain.so").exists():
        pytest.skip("this PostgreSQL has no auto_explain")
    server = servers(
        "session_preload_libraries=auto_explain", "auto_explain.log_min_duration=0", "timezone=UTC", "enable_seqscan=off"
    )
    server.sql("""
        CREATE TABLE ids (id bigint PRIMARY KEY);
        INSERT INTO ids SELECT flake_min(timestamptz '2026-01-01Z' + n * interval '1 h') FROM generate_series(0, 999) n;
        ANALYZE ids""")  # fmt: skip
    server.sql("CREATE VIEW orders AS SELECT id, flake_timestamp(id) AS created_at FROM ids")
    return server


def plan_of(server, *command, **environment):
    """Returns the plan of the query that a client sent, and checks its result."""
    log = server.dir / "server.log"
    begins = log.stat().st_size
    done = subprocess.run(command, check=False, env=server.client_environment | environment, capture_output=True, text=True)
    assert done.stdout.strip() == str(1000 - 18 * 24), done.stderr
    sent = log.read_text()[begins:].split("Query Text: ")[1:]
    found, = [query for query in sent if "orders" in query.partition("\n")[0]]
    return found


@pytest.mark.matrix
@pytest.mark.parametrize("is_aware", [True, False], ids=["aware", "naive"])
@pytest.mark.parametrize("library, program", [("django", DJANGO), ("sqlalchemy", SQLALCHEMY)], ids=["Django", "SQLAlchemy"])
def test_filters_of_query_builders_are_ranges(server, library, program, is_aware):
    environment = {"PYTHONPATH": str(CLIENTS / "python")}
    if subprocess.run([sys.executable, "-c", f"import {library}"], check=False, env=environment, capture_output=True).returncode:
        pytest.skip(f"{library} is not there and could not be installed")
    plan = plan_of(server, sys.executable, "-c", f"AWARE = {is_aware}\n{program}", **environment)
    assert "Index Cond: (id >= " in plan and "flake_timestamp" not in plan.partition("\n")[2], plan
    # A time without a zone is in the session's time zone.
    assert ("flake_plan.instant(" in plan) != is_aware, plan


def test_a_filter_of_node_postgres_is_a_range(server):
    modules = CLIENTS / "node_modules"
    if not shutil.which("node") or not (modules / "pg").is_dir():
        pytest.skip("node or its package pg is not there and could not be installed")
    plan = plan_of(server, "node", "-e", NODE, NODE_PATH=str(modules), TZ="UTC")
    assert "Index Cond: (id >= '" in plan and "flake_timestamp" not in plan.partition("\n")[2], plan
