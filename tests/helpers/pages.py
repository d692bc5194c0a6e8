"""The blocks of code on a page of the documentation, and their output.

FLAKE_ACCEPT replaces `text` blocks that differ from the output. Blocks with new errors are replaced only if it is "errors".
"""

import collections
import os
import re
import shutil
import subprocess

from conftest import ROOT, as_server, bindir

PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md")), ROOT / "skills/flake/SKILL.md"]
BLOCK = re.compile(r"^```(\w+)\n(.*?)^```$", re.M | re.S)


def named(page):
    """Names a page by its path, as the ID of a test."""
    return str(page.relative_to(ROOT))


def blocks(page):
    """Returns all blocks, each with its language."""
    return BLOCK.findall(page.read_text())


def section(page, heading):
    """The blocks below a heading."""
    below, = (text for text in re.split(r"^#+ ", page.read_text(), flags=re.M) if text.startswith(f"{heading}\n"))
    return BLOCK.findall(below)


def recipe(page, heading, language="sql"):
    """The blocks of a language below a heading."""
    return [code for found, code in section(page, heading) if found == language]


def normal(output):
    """Returns the part of an output that must be equal whenever and wherever it runs."""
    output = re.sub(r"\d{4}-\d\d-\d\d \d\d:\d\d:\d\d(\.\d+)?([+-]\d\d)", "<time>", output)
    output = re.sub(r"\d+(\.\d+)?", "0", output)
    # PostgreSQL 18 and earlier print it this way.
    output = re.sub(r"^detail:  (could not choose a best candidate function\.)\n(hint:) ", r"\2  \1", output, flags=re.M | re.I)
    output = re.sub(r"-{2,}", "-", output)
    return [re.sub(r"\s+", " ", line).strip() for line in output.strip().splitlines()]


def errors(output):
    """Counts the errors in an output."""
    return collections.Counter(line for line in normal(output) if line.startswith(("ERROR:", "FATAL:", "PANIC:")))


def accept(page, text, output):
    """Writes the output to the page, in place of a text block that differs."""
    lines = (line.rstrip() for line in output.strip("\n").splitlines())
    page.write_text(page.read_text().replace(f"```text\n{text}```\n", "```text\n" + "\n".join(lines) + "\n```\n", 1))


def compare(page, sql, text, output):
    """Compares the output of SQL with the text block after it. Without a text block, an error is a failure."""
    if text is None:
        assert "ERROR" not in output, f"{sql}\n{output}"
    elif normal(output) != normal(text):
        accepting = os.environ.get("FLAKE_ACCEPT")
        assert accepting, f"{sql}\n{output}\ninstead of\n{text}"
        new = errors(output) - errors(text)
        assert accepting == "errors" or not new, f"{page.name}: scripts/test accept --errors stores {list(new)}"
        accept(page, text, output)


class Section:
    """The blocks below a heading, executed in order as the test asks for them. At the end of a `with`, all must have been
    executed."""

    def __init__(self, page, heading):
        self.page, self.blocks = page, section(page, heading)

    def __enter__(self):
        return self

    def __exit__(self, failed, *_):
        assert failed or not self.blocks, f"not executed: {self.blocks}"

    def next(self, language):
        (found, code), *self.blocks = self.blocks
        assert found == language
        return code

    def sql(self, server, *options, **variables):
        """Runs the next block in a psql session of its own."""
        sql = self.next("sql")
        text = self.next("text") if self.blocks and self.blocks[0][0] == "text" else None
        options += tuple(part for name, value in variables.items() for part in ("-v", f"{name}={value}"))
        script = f"SET timezone = 'UTC';\n{sql}"
        compare(self.page, sql, text, server.run("psql", "-X", "-q", *options, input=script, stderr=subprocess.STDOUT).stdout)

    def bash(self, server, **environment):
        """Runs the next block as the server's user, with the variables that the page names."""
        run(server, self.next("bash"), **of(server) | environment)


def of(server):
    """The environment of a server's commands."""
    named = {name: server.client_environment[name] for name in ("PGHOST", "PGUSER", "PGDATABASE")}
    data = server.dir / "data"
    config = next(server.base.glob("etc/*/main"), data)
    return named | {"PATH": f"{bindir()}:{os.environ['PATH']}", "PGDATA": str(data), "CONFIG": str(config)}


def steps(block):
    """The commands of a block."""
    return re.split(r"\s*(?:&&|\n)\s*", block.strip())


def run(server, script, **environment):
    """Runs a script as if it was pasted, so only the script itself stops at an error. Servers that it starts keep its output
    open."""
    log = server.base / "commands.log"
    with log.open("a") as output:
        command = as_server("bash", "-uxc", script)
        done = subprocess.run(
            command, check=False, env=os.environ | environment, cwd="/", stdin=subprocess.DEVNULL, stdout=output, stderr=output
        )
    assert done.returncode == 0, log.read_text()


def createcluster(server, name, data, port):
    """Runs pg_createcluster, and returns the directory of the configuration. If that exists already, it is replaced."""
    etc = server.base / "etc"
    if not etc.exists():
        etc.mkdir()
        shutil.chown(etc, (server.dir / "data").owner())
    version = bindir().parent.name
    command = ["pg_createcluster", version, name, "-d", data, "-s", server.dir, "-l", server.dir / f"{name}.log", "-p", port]
    environment = ["env", f"PG_CLUSTER_CONF_ROOT={etc}"]
    command += ["--start-conf=manual", *(["--", "-A", "trust"] if not data.exists() else [])]
    subprocess.run(as_server(*environment, *map(str, command)), check=True, capture_output=True, cwd="/")
    return etc / version / name


def lay_out_as_debian(server):
    """Moves the configuration of a server to a directory of its own, and starts the server there."""
    server.stop()
    createcluster(server, "main", server.dir / "data", 5432)
    run(server, 'pg_ctl -D "$CONFIG" -w start', **of(server))
    return server


def emptied_debian_cluster(server, data):
    """Makes a cluster with an empty data directory, which finds the extension where the server does."""
    config = createcluster(server, "other", data, 5433)
    shutil.rmtree(data)
    settings = (config.parent / "main" / "postgresql.conf").read_text()
    found = re.findall(r"^(?:unix_socket|extension|dynamic_library)\w+ = .*$", settings, re.M)
    with (config / "postgresql.conf").open("a") as file:
        file.write("\n".join(found) + "\n")
    return config
