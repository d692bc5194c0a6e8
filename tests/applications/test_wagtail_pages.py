"""A site of Wagtail, and Django's admin beside it, in a browser: keys that were integers are widened and adopted."""

import json
import re
import shutil
import sys
import time

import pytest
from application import APPLICATIONS, HERE, LARGE, Application, browsing, report

import test_widen
from conftest import ROOT
from test_wagtail import KEYS

WAGTAIL = APPLICATIONS / "wagtail"
pytestmark = pytest.mark.skipif(
    not WAGTAIL.is_dir() or not shutil.which("chromium"), reason="Wagtail or Chromium is not there and could not be installed"
)
TEXT = "(document.querySelector('main, #content, #main') || document.body).innerText"
MAKE = """
from django.contrib.auth.models import User
from tea.models import Cup, Kind, Note, TeaPage
from wagtail.models import Page, Site
user = User.objects.create_superuser("keeper", "a@example.org", "secret")
kinds = [Kind.objects.create(name=name) for name in ("green", "black")]
home = Page.get_first_root_node().add_child(instance=TeaPage(title="Home", slug="shop", body="Welcome", kind=kinds[0]))
Site.objects.update(root_page=home)
for number in range(20):
    page = home.add_child(instance=TeaPage(title=f"Old {number}", slug=f"old-{number}", kind=kinds[number % 2], owner=user))
    Note.objects.create(page=page, text=f"note {number}", sort_order=0)
    page.save_revision(user=user, log_action=True).publish(user=user)
    Cup.objects.create(name=f"cup {number}", kind=kinds[number % 2])
"""


class Site:
    def __init__(self, application, directory, **environment):
        self.application = application
        self.environment = {
            "PYTHONPATH": f"{WAGTAIL}:{HERE}:{ROOT / 'examples/django'}:{directory}", "DJANGO_SETTINGS_MODULE": "tea.settings",
            "MEDIA": str(directory), "PYTHONWARNINGS": "ignore",
        } | environment  # fmt: skip

    def django(self, *command):
        return self.application.run(sys.executable, "-m", "django", *command, environment=self.environment)

    def serving(self):
        serve = [sys.executable, "-m", "django", "runserver", "--noreload", "PORT"]
        return self.application.serving(*serve, path="/admin/login/", environment=self.environment)


class Walk:
    """A visit, and the text of its pages by what was done."""

    def __init__(self, browser, address):
        self.browser, self.address, self.shown = browser, address, {}

    def open(self, path, what=None):
        self.browser.open(self.address + path)
        if what:
            self.note(what)

    def note(self, what):
        text, last = self.browser.run(TEXT), None
        # Scripts of a page add to it.
        while text != last:
            time.sleep(0.5)
            text, last = self.browser.run(TEXT), text
        ago = r"\b(just now|now|less than a minute ago|\d+\s(second|minute|hour)s?( ago)?)\b"
        text = re.sub(ago, "…", text, flags=re.I)
        text = re.sub(r"\d\d?:\d\d( [ap]m)?|\d+(\.\d+)? [ap]\.m\.|\d{6,}|\b\w{3,9}\.? \d+, 20\d\d|\d+ \w+ 20\d\d|#\d+", "…", text)
        # Wagtail names the entries of several tables by whichever of them comes first in a set of Python.
        text = re.sub(r"\b(page|model) log entries", "log entries", text)
        self.shown[what] = re.sub(r"\s+", " ", text)

    def fill(self, **fields):
        for name, value in fields.items():
            field = f"document.querySelector('[name={json.dumps(name)}]')"
            self.browser.run(f"{field}.value = {json.dumps(value)}")
            for event in "input", "change":
                self.browser.run(f"{field}.dispatchEvent(new Event('{event}', {{bubbles: true}}))")

    def submit(self, what, button):
        self.browser.run("window.isOld = true")
        self.browser.run(f"document.querySelector({json.dumps(button)}).click()")
        self.browser.until("!window.isOld && document.readyState === 'complete'")
        self.note(what)

    def follow(self, text):
        """Opens the page that a link with this text leads to, and returns the key in its address."""
        links = "[...document.querySelectorAll('main a, #main a, #content a')]"
        find = f"{links}.find(a => a.innerText.trim() === {json.dumps(text)}).href"
        address = self.browser.run(find)
        self.browser.open(address)
        return re.search(r"/(\d+)/", address)[1]


def walk(browser, address, home):
    its = Walk(browser, address)
    its.open("/admin/login/")
    its.fill(username="keeper", password="secret")
    its.submit("logged in", "button[type=submit]")
    for number in range(3):
        its.open(f"/admin/pages/add/tea/teapage/{home}/")
        its.fill(title=f"New {number}", slug=f"new-{number}", body=f"body {number}")
        its.submit(f"published {number}", "[name=action-publish]")
    its.open(f"/admin/pages/{home}/?ordering=title", "explorer")
    page = its.follow("New 0")
    its.note("edit form")
    its.fill(title="Changed", body="changed")
    its.submit("saved a draft", "form[id$=edit-form] button[type=submit]:not([name])")
    its.open(f"/admin/pages/{page}/edit/")
    its.submit("published again", "[name=action-publish]")
    its.open(f"/admin/pages/{page}/history/", "history")
    its.open("/new-0/", "page")
    its.open("/", "home page")
    its.open(f"/admin/pages/{page}/copy/")
    its.fill(new_title="Copied", new_slug="copied")
    its.submit("copied", "main form button[type=submit], main form input[type=submit]")
    its.open(f"/admin/pages/{home}/?ordering=title")
    copied = its.follow("Copied")
    its.open(f"/admin/pages/{copied}/move/{page}/confirm/")
    its.submit("moved", "main form button[type=submit], main form input[type=submit]")
    its.open(f"/admin/pages/{page}/", "children")
    its.open(f"/admin/pages/{copied}/edit/", "moved page")
    its.open(f"/admin/pages/{copied}/delete/")
    its.submit("deleted", "main form button[type=submit], main form input[type=submit]")
    its.open("/admin/snippets/tea/kind/add/")
    its.fill(name="white")
    its.submit("snippet", "main form button[type=submit], form button[type=submit].action-save")
    its.open("/admin/snippets/tea/kind/", "snippets")
    its.follow("white")
    its.note("snippet form")
    its.open("/admin/collections/add/")
    its.fill(name="Pictures")
    its.submit("collection", "main form button[type=submit], main form input[type=submit]")
    its.open("/admin/pages/search/?q=New", "search")
    its.open("/admin/reports/site-history/", "site history")
    its.open("/django-admin/tea/kind/add/")
    its.fill(**{"name": "red", "cup_set-0-name": "a red cup"})
    its.submit("in Django's admin", "[name=_save]")
    kind = its.follow("red")
    its.note("form of Django's admin")
    its.fill(**{"name": "reddish", "cup_set-1-name": "another"})
    its.submit("changed in Django's admin", "[name=_continue]")
    its.note("both cups")
    its.open(f"/django-admin/tea/kind/{kind}/history/", "history of Django's admin")
    its.open("/django-admin/tea/cup/", "cups")
    its.open(f"/django-admin/tea/kind/{kind}/delete/")
    its.submit("deleted in Django's admin", "#content [type=submit]")
    its.open("/django-admin/tea/cup/add/")
    its.fill(name="one more", kind="1")
    its.submit("cup", "[name=_save]")
    return its.shown


def widen(application):
    """By examples/widen.sql, and the columns that it asks to look at."""
    client = application.server.of_client("postgres", application.name, "")
    for table, in application.sql(KEYS, ["int4"]):
        _, looks, statements = test_widen.plan(client, table)
        names = [look.removeprefix("column ") for look in looks]
        names += ["taggit_taggeditem.object_id"] * (table == "taggit_taggeditem")
        also = [f"ALTER TABLE {name.rsplit('.', 1)[0]} ALTER {name.rsplit('.', 1)[1]} TYPE bigint;" for name in names]
        test_widen.run(client, "\n".join([statements, *also]))


def test_pages_are_as_before(server, tmp_path):
    native = Application(server, "wagtail")
    site = Site(native, tmp_path)
    (tmp_path / "tea_migrations").mkdir()
    (tmp_path / "tea_migrations/__init__.py").touch()
    site.django("makemigrations", "tea", "--verbosity", "0")
    site.django("migrate", "--verbosity", "0")
    site.django("shell", "--no-imports", "-c", MAKE)
    adopted = Application(server, f"{native.name}_adopted", native.name)
    widen(adopted)
    adopted.adopt("si")
    assert adopted.obstacles == {}
    home, = native.sql("SELECT id FROM wagtailcore_page WHERE slug = 'shop'")[0]
    shown = []
    for site in Site(native, tmp_path), Site(adopted, tmp_path, WIDE="yes"):
        with site.serving() as address, browsing() as browser:
            shown.append(walk(browser, address, home))
            assert [error for error in browser.errors if not re.search("favicon|beforeunload", error)] == []
    before, after = shown
    for what in before:
        assert before[what] == after[what], what
    assert "both cups" in after and "Copied" in after["moved page"] and "changed" in after["page"]
    assert adopted.dangling() == native.dangling() == 0
    ids = adopted.tables_with_ids()
    assert {"wagtailcore_page", "wagtailcore_revision", "tea_kind", "tea_cup", "django_admin_log"} <= ids
    assert adopted.sql(f"SELECT count(*) FROM wagtailcore_page WHERE id > {LARGE}") == [(3,)]
    report("Wagtail and Django's admin", pages=len(after), tables=len(ids))
