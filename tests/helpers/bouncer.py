"""PgBouncer before a server."""

import contextlib
import shutil
import subprocess

import pytest

from conftest import as_server, bindir
from waiting import wait_until

PROGRAM = shutil.which("pgbouncer") or shutil.which("pgbouncer", path="/usr/sbin")
CONFIGURATION = """[databases]
postgres = host={server} pool_size={sessions}
[pgbouncer]
listen_addr =
unix_socket_dir = {directory}
listen_port = 6432
auth_type = trust
auth_file = {directory}/users
pool_mode = {mode}
ignore_startup_parameters = extra_float_digits
max_client_conn = {clients}
pidfile = {directory}/pid
logfile = {directory}/log
"""


@contextlib.contextmanager
def bouncer(server, mode, clients, sessions):
    """Lets `clients` share `sessions`, which change hands after each transaction or statement. Returns where clients connect."""
    if PROGRAM is None:
        pytest.skip("no pgbouncer")
    directory = server.base / "bouncer"
    directory.mkdir()
    directory.chmod(0o777)
    (directory / "users").write_text('"postgres" ""\n')
    configuration = directory / "ini"
    configuration.write_text(CONFIGURATION.format(
        server=server.dir, sessions=sessions, directory=directory, mode=mode, clients=clients + 10,
    ))  # fmt: skip
    # Each client needs a socket.
    command = ["sh", "-c", f"ulimit -n {4 * clients + 200}; exec \"$@\"", "sh", *as_server(PROGRAM, "-q", configuration)]
    program = subprocess.Popen(command, stdin=subprocess.DEVNULL)
    try:
        wait_until(lambda: (directory / ".s.PGSQL.6432").exists() or program.poll() is not None)
        assert program.poll() is None, (directory / "log").read_text()
        yield directory
    finally:
        program.terminate()
        program.wait()


def load(server, directory, script, clients, transactions):
    """Runs a script in each client, `transactions` times."""
    file = server.base / "pooled.sql"
    file.write_text(script)
    command = ["-n", "-f", file, "-c", clients, "-j", 2, "-t", transactions, "-h", directory, "-p", 6432]
    subprocess.run(
        ["sh", "-c", f"ulimit -n {4 * clients + 200}; exec \"$@\"", "sh", bindir() / "pgbench", *map(str, command)],
        check=True, env=server.client_environment, stdout=subprocess.DEVNULL,
    )  # fmt: skip
