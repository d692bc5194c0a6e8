"""The built pages, a web server for them, and a browser."""

import functools
import http.server
import threading
from pathlib import Path

import pytest

from browser import Browser

ROOT = Path(__file__).parents[2]
HTML = ROOT / "target/site/book/html"


class Quiet(http.server.SimpleHTTPRequestHandler):
    def log_message(self, *_):
        """Writes nothing."""


@pytest.fixture(scope="session")
def address():
    """The address of the pages, on a web server that knows nothing of them."""
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), functools.partial(Quiet, directory=HTML)) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{server.server_port}"
        server.shutdown()


@pytest.fixture(scope="session")
def tab():
    browser = Browser()
    yield browser
    browser.close()


@pytest.fixture
def browser(tab, address):
    """The tab, for one test. Afterwards no page has had an error, and no page has asked another server for anything."""
    tab.prefer("light")
    tab.requests.clear()
    tab.errors.clear()
    yield tab
    assert tab.errors == []
    assert [url for url in tab.requests if not url.startswith((address, "file:", "data:", "blob:", "about:"))] == []
