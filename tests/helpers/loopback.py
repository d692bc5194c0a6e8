"""A TCP port of this machine that leads to a server's socket, for clients that cannot use Unix sockets."""

import contextlib
import socket
import threading


@contextlib.contextmanager
def port_of(server):
    with socket.create_server(("127.0.0.1", 0)) as listener:
        threading.Thread(target=accept, args=(listener, str(server.dir / ".s.PGSQL.5432")), daemon=True).start()
        yield listener.getsockname()[1]


def accept(listener, path):
    with contextlib.suppress(OSError):
        while True:
            client, _ = listener.accept()
            there = socket.socket(socket.AF_UNIX)
            there.connect(path)
            for one, other in [(client, there), (there, client)]:
                threading.Thread(target=copy, args=(one, other), daemon=True).start()


def copy(one, other):
    with contextlib.suppress(OSError):
        while data := one.recv(65536):
            other.sendall(data)
        other.shutdown(socket.SHUT_WR)
