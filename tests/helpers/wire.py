"""A TCP port that leads to a server's socket. A test decides what becomes of the server's answers."""

import contextlib
import re
import socket
import threading
import time

# A row of one bigint, as binary or as text of 19 digits.
ROW = re.compile(rb"D\0\0\0(?:\x12\0\x01\0\0\0\x08(?s:(.{8}))|\x1d\0\x01\0\0\0\x13(\d{19}))")
# The end of an answer.
READY = b"Z\0\0\0\5I"


def ids_of(data):
    return [int.from_bytes(binary, "big", signed=True) if binary else int(text) for binary, text in ROW.findall(data)]


class Wire:
    """`cut` forwards so many bytes of the next answer that is longer, and then ends the connection. `hold` keeps answers with
    rows back until `release`. `pause` delays each of them by so many seconds. `silence` leaves connections that exist without an
    answer. `kept` is the IDs of what was cut or held back."""

    def __init__(self, server):
        self.path, self.cut, self.kept, self.connections = str(server.dir / ".s.PGSQL.5432"), None, [], 0
        self.pause = self.silent = 0
        self.release = threading.Event()
        self.release.set()
        self.listener = socket.create_server(("127.0.0.1", 0))
        self.port = self.listener.getsockname()[1]
        threading.Thread(target=self.accept, daemon=True).start()

    def hold(self):
        self.release.clear()

    def silence(self):
        self.silent = self.connections

    def environment(self):
        return {"PGHOST": "127.0.0.1", "PGPORT": str(self.port)}

    def accept(self):
        with contextlib.suppress(OSError):
            while True:
                client, _ = self.listener.accept()
                self.connections += 1
                there = socket.socket(socket.AF_UNIX)
                there.connect(self.path)
                threading.Thread(target=self.ask, args=(client, there), daemon=True).start()
                threading.Thread(target=self.answer, args=(there, client, self.connections), daemon=True).start()

    def ask(self, client, there):
        with contextlib.suppress(OSError):
            while data := client.recv(65536):
                there.sendall(data)
            there.shutdown(socket.SHUT_WR)

    def answer(self, there, client, number):
        with contextlib.suppress(OSError):
            is_held, end = False, b""
            while data := there.recv(1 << 20):
                if (rows := ids_of(data)) and self.cut is not None and len(data) > self.cut:
                    data, self.cut = data[: self.cut], None
                    self.kept += ids_of(data)
                    client.sendall(data)
                    break
                # A long answer comes in parts.
                is_held = is_held or (rows and not self.release.is_set())
                if is_held:
                    self.kept += rows
                    self.release.wait()
                    end = (end + data)[-len(READY) :]
                    is_held = end != READY
                time.sleep(self.pause if rows else 0)
                if number <= self.silent:
                    continue
                client.sendall(data)
            client.shutdown(socket.SHUT_RDWR)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.release.set()
        self.listener.close()
