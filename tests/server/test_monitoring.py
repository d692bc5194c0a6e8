"""docs/how-to/monitoring: the queries for members of pg_monitor, and the alerts that they raise."""

import json
import re
import shutil
import socket
import subprocess
import urllib.request

import psycopg
import pytest

from conftest import ROOT
from waiting import wait_until

yaml = pytest.importorskip("yaml", reason="python3-yaml is not installed")
DIRECTORY = ROOT / "docs/how-to/monitoring"
(JOB,) = yaml.safe_load((DIRECTORY / "sql_exporter.yml").read_text())["jobs"]
QUERIES = {query["name"]: query for query in JOB["queries"]}
(GROUP,) = yaml.safe_load((DIRECTORY / "alerts.yml").read_text())["groups"]
ALERTS = {rule["alert"]: rule["expr"] for rule in GROUP["rules"]}
ALL_ARE_WELL = {
    "sql_exporter_last_scrape_failed{query='flake_makes_ids'}": "0+0x60", "sql_flake_stat{col='clock_changes'}": "3+0x60",
    "sql_flake_stat{col='lead'}": "0+0x60",
    "sql_flake_watermark{col='lag'}": "10+0x60", "sql_flake_check{col='ok',name='end of layouts'}": "1+0x60",
}  # fmt: skip
# The causes of each alert, as values of a metric minute by minute.
RAISED = {
    "FlakeRefusesIDs": ("sql_exporter_last_scrape_failed{query='flake_makes_ids'}", "0+0x10 1+0x50"),
    "FlakeClockWasSet": ("sql_flake_stat{col='clock_changes'}", "3+0x40 4+0x20"),
    "FlakeLeadsTheClock": ("sql_flake_stat{col='lead'}", "0+0x10 100-1x50"),
    "FlakeWatermarkIsOld": ("sql_flake_watermark{col='lag'}", "10+60x60"),
    "FlakeCheckFails": ("sql_flake_check{col='ok',name='end of layouts'}", "1+0x10 0+0x50"),
}


@pytest.fixture
def server(own_servers):
    server = own_servers(clock="+0")
    server.sql("CREATE ROLE monitor LOGIN IN ROLE pg_monitor; CREATE ROLE app LOGIN")
    return server


def read(db, name):
    """Returns the numbers of a query, by column and labels."""
    query = QUERIES[name]
    cursor = db.execute(query["query"])
    assert [column.name for column in cursor.description] == [*query.get("labels", []), *query["values"]]
    labels = len(query.get("labels", []))
    found = {}
    for row in cursor.fetchall():
        assert all(isinstance(label, str) for label in row[:labels]) and all(isinstance(value, float) for value in row[labels:])
        found |= {(column, *row[:labels]): value for column, value in zip(query["values"], row[labels:], strict=True)}
    return found


def test_a_member_of_pg_monitor_reads_them(server):
    with server.connect(user="monitor") as db:
        assert read(db, "flake_makes_ids") == {("ok",): 1}
        checks = read(db, "flake_check")
        assert {check for _, check in checks} == {check for check, in server.sql("SELECT name FROM flake_check()")}
        assert set(checks.values()) == {1}
        assert read(db, "flake_watermark") == {("lag",): 0}
        assert read(db, "flake_stat")["sessions",] == 1


def is_refused(db):
    try:
        read(db, "flake_makes_ids")
    except psycopg.errors.ObjectNotInPrerequisiteState:
        return True
    return False


@pytest.mark.matrix
def test_the_values_that_alerts_are_about_change(server):
    with server.connect(user="monitor") as db, server.connect(user="app") as app:
        read(db, "flake_makes_ids")
        app.execute("BEGIN; SELECT flake_next('twitter')")
        changes = read(db, "flake_stat")["clock_changes",]
        server.set_clock("+1000")
        read(db, "flake_makes_ids")
        assert read(db, "flake_stat")["clock_changes",] > changes
        assert 990 < read(db, "flake_watermark")["lag",] < 1100, "although the session is of another role"
        app.execute("ROLLBACK")
        assert read(db, "flake_watermark")["lag",] == 0
        server.set_clock("-1000")
        assert read(db, "flake_makes_ids") == {("ok",): 1}
        assert 1990 < read(db, "flake_stat")["lead",] < 2010
        assert read(db, "flake_check")["ok", "lead"] == 0
        server.set_clock("-100000")
        wait_until(lambda: is_refused(db))
        server.set_clock("+1000")
        assert read(db, "flake_makes_ids") == {("ok",): 1}
        server.sql("""SELECT flake_create_layout('short', '{"epoch": "2024-01-01T00:00:00Z", "tick": "1s", "fields": [
            {"name": "timestamp", "bits": 27, "role": "timestamp"}, {"name": "sequence", "bits": 24, "role": "sequence"}]}')""")
        assert read(db, "flake_check")["ok", "end of layouts"] == 1
        server.sql("CREATE TABLE t (id bigint DEFAULT flake_next('short'))")
        assert read(db, "flake_check")["ok", "end of layouts"] == 0


@pytest.mark.matrix
def test_a_standby_is_well(server, own_servers):
    standby = own_servers(standby_of=server)
    with standby.connect(user="monitor") as db:
        assert read(db, "flake_makes_ids") == {("ok",): 1}
        assert read(db, "flake_watermark") == {("lag",): 0}
        assert all(read(db, "flake_check").values()) and read(db, "flake_stat")


def test_alerts_are_about_what_is_read():
    assert ALERTS.keys() == RAISED.keys()
    for expression in ALERTS.values():
        metric, label, value = re.search(r'sql_(\w+)\{(\w+)="([^"]+)"\}', expression).groups()
        if metric == "exporter_last_scrape_failed":
            assert (label, value in QUERIES) == ("query", True)
        else:
            assert (label, value in QUERIES[metric]["values"]) == ("col", True)


@pytest.mark.parametrize("alert", RAISED)
def test_promtool_accepts_the_alerts(tmp_path, alert):
    """Prometheus' own tool checks them."""
    if not shutil.which("promtool"):
        pytest.skip("promtool, of Debian's package prometheus, is not installed")
    metric, values = RAISED[alert]
    series = [{"series": name, "values": values if name == metric else well} for name, well in ALL_ARE_WELL.items()]
    expressions = [{"expr": f"count(ALERTS{{alertname='{name}',alertstate='firing'}}) or vector(0)", "eval_time": "50m",
                    "exp_samples": [{"labels": "{}", "value": int(name == alert)}]} for name in ALERTS]  # fmt: skip
    test = {"rule_files": [str(DIRECTORY / "alerts.yml")], "evaluation_interval": "1m",
            "tests": [{"interval": "1m", "input_series": series, "promql_expr_test": expressions}]}  # fmt: skip
    (tmp_path / "test.yml").write_text(json.dumps(test))
    done = subprocess.run(["promtool", "test", "rules", tmp_path / "test.yml"], check=False, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr


@pytest.mark.matrix
def test_the_exporter_serves_the_metrics(server):
    """Debian's exporter uses the file as it is, except for the server and the interval."""
    exporter = shutil.which("prometheus-sql-exporter")
    if not exporter:
        pytest.skip("prometheus-sql-exporter is not installed")
    text = (DIRECTORY / "sql_exporter.yml").read_text().replace("interval: 1m", "interval: 1s")
    text = text.replace("postgres://monitor@localhost/postgres?", f"postgres://monitor@/postgres?host={server.dir}&")
    file = server.base / "sql_exporter.yml"
    file.write_text(text)
    with socket.create_server(("127.0.0.1", 0)) as free:
        address = f"127.0.0.1:{free.getsockname()[1]}"
    exports = subprocess.Popen([exporter, "-config.file", file, "-web.listen-address", address], stderr=subprocess.DEVNULL)

    def has(line):
        try:
            lines = urllib.request.urlopen(f"http://{address}/metrics").read().decode().splitlines()
        except OSError:
            return False
        plain = [re.sub(r'(database|driver|host|sql_job|user)="[^"]*",?', "", each).replace(",}", "}") for each in lines]
        return line in plain

    try:
        wait_until(lambda: has('sql_exporter_last_scrape_failed{query="flake_makes_ids"} 0'))
        wait_until(lambda: has('sql_flake_check{col="ok",name="end of layouts"} 1'))
        wait_until(lambda: has('sql_flake_watermark{col="lag"} 0'))
        wait_until(lambda: has('sql_flake_stat{col="clock_changes"} 0'))
        server.set_clock("-100000")
        wait_until(lambda: has('sql_exporter_last_scrape_failed{query="flake_makes_ids"} 1'))
        wait_until(lambda: has('sql_flake_stat{col="clock_changes"} 1'))
    finally:
        exports.terminate()
        exports.wait()
