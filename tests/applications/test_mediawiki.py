"""MediaWiki of Debian's package in a browser: PHP that asks by lastval(), no foreign key, and keys that were integers."""

import re
import shutil
import time

import pytest
from application import APPLICATIONS, LARGE, Application, browsing, report

WIKI = APPLICATIONS / "mediawiki/usr/share/mediawiki"
pytestmark = pytest.mark.skipif(
    not shutil.which("php") or not WIKI.is_dir() or not shutil.which("chromium"), reason="PHP, MediaWiki or Chromium is not there"
)
# References that the application knows.
REFERENCES = [
    ("page.page_latest", "revision.rev_id"), ("revision.rev_page", "page.page_id"), ("revision.rev_actor", "actor.actor_id"),
    ("slots.slot_revision_id", "revision.rev_id"), ("slots.slot_content_id", "content.content_id"),
    ("revision_comment_temp.revcomment_rev", "revision.rev_id"),
    ("revision_comment_temp.revcomment_comment_id", "comment.comment_id"), ("recentchanges.rc_actor", "actor.actor_id"),
    ("recentchanges.rc_comment_id", "comment.comment_id"), ("logging.log_actor", "actor.actor_id"),
    ("logging.log_comment_id", "comment.comment_id"), ("watchlist.wl_user", "user.user_id"), ("actor.actor_user", "user.user_id"),
    ("pagelinks.pl_from", "page.page_id"), ("categorylinks.cl_from", "page.page_id"),
]  # fmt: skip
TEXTS = """SELECT count(*) FROM mediawiki.content WHERE NOT EXISTS (
    SELECT FROM mediawiki.text WHERE content_address = 'tt:' || old_id)"""


def missing(child, parent):
    (table, column), (other, key) = (name.split(".") for name in (child, parent))
    return f"""SELECT count(*) FROM mediawiki.{table} WHERE {column} <> 0
               AND NOT EXISTS (SELECT FROM mediawiki."{other}" WHERE {key} = {column})"""


def next_second():
    """Changes of the same second stand in no order, and MediaWiki lists them as the database finds them."""
    time.sleep(1)


class Wiki:
    def __init__(self, application, directory):
        self.application, self.directory = application, directory
        self.environment = {"MW_CONFIG_FILE": str(directory / "LocalSettings.php"), "PHP_CLI_SERVER_WORKERS": "3"}

    def maintain(self, script, *arguments, environment=None):
        # The installer refuses to run where the settings exist.
        environment = self.environment if environment is None else environment
        command = ["php", "-d", "error_reporting=E_ALL&~E_DEPRECATED", WIKI / "maintenance" / script, *arguments]
        return self.application.run(*command, environment=environment)

    def install(self):
        socket = self.application.server.dir
        self.maintain(
            "install.php", "--dbtype=postgres", f"--dbserver={socket}", "--dbport=5432", f"--dbname={self.application.name}",
            "--dbuser=postgres", "--dbpass=x", "--installdbuser=postgres", "--installdbpass=x", "--pass=a long secret",
            f"--confpath={self.directory}", "--scriptpath=", "--server=http://127.0.0.1", "Tea", "Keeper", environment={},
        )  # fmt: skip
        with (self.directory / "LocalSettings.php").open("a") as settings:
            settings.write("""
                $wgDBname = getenv("PGDATABASE"); $wgServer = "http://" . ($_SERVER["HTTP_HOST"] ?? "localhost");
                wfLoadSkin("Vector"); $wgJobRunRate = 0; $wgPhpCli = false; $wgMainCacheType = CACHE_NONE;
                $wgEnableUploads = false; $wgUseInstantCommons = false; $wgEnableEmail = false; $wgRightsIcon = "";
                $wgDefaultUserOptions["rcfilters-disable"] = $wgDefaultUserOptions["wlenhancedfilters-disable"] = 1;""")
        for number in range(12):
            self.edit(f"Old {number}", f"Text {number} with [[Old {(number + 1) % 12}]] [[Category:Old]]")
        self.maintain("runJobs.php")

    def edit(self, title, text):
        (self.directory / "text").write_text(text)
        script = f"php {WIKI}/maintenance/edit.php --user Keeper '{title}' <{self.directory}/text"
        self.application.run("bash", "-c", script, environment=self.environment)
        next_second()

    def walk(self, browser, address):
        """Uses pages, and returns what each of them shows."""
        shown = {}

        def look(what, title, query=""):
            browser.open(f"{address}/index.php?title={title}{query}")
            shown[what] = text()

        def text():
            browser.until("document.readyState === 'complete' && !!document.querySelector('#bodyContent')")
            # Its programs put other elements in the place of some.
            browser.until("!!window.mw?.loader?.getModuleNames && !mw.loader.getModuleNames().some("
                          "(name) => ['loading', 'loaded', 'executing'].includes(mw.loader.getState(name)))")
            return normal(browser.run("document.querySelector('#firstHeading').innerText + '\\n' + "
                                      "document.querySelector('#bodyContent').innerText"), address)

        def submit(what, button):
            browser.run("window.isOld = true")
            browser.run(f"document.querySelector({button!r}).click()")
            browser.until("!window.isOld && document.readyState === 'complete'")
            next_second()
            shown[what] = text()

        def save(title, content):
            browser.open(f"{address}/index.php?title={title}&action=edit")
            browser.fill("#wpTextbox1", content)
            browser.fill("#wpSummary", f"about {title}")
            submit(f"saved {title} {len(shown)}", "#wpSave")

        browser.open(f"{address}/index.php?title=Special:UserLogin")
        browser.fill("#wpName1", "Keeper")
        browser.fill("#wpPassword1", "a long secret")
        submit("logged in", "#wpLoginAttempt")
        for number in range(3):
            save(f"New_{number}", f"A page with [[Old {number}]], [[New {number + 1}]] and [[Category:New]]")
        save("New_0", "Another text with [[Old 1]]")
        save("Talk:New_0", "Well said. ~~~~")
        save("Old_0", "An old page has a new text")
        look("page", "New_0")
        look("history", "New_0", "&action=history")
        look("difference", "New_0", "&diff=cur&oldid=prev")
        look("old revision", "Old_0", "&direction=prev&oldid=cur")
        browser.open(f"{address}/index.php?title=Special:MovePage/New_1")
        browser.fill("input[name=wpNewTitleMain]", "Moved")
        submit("moved", "button[name=wpMove]")
        browser.open(f"{address}/index.php?title=New_2&action=delete")
        submit("deleted", "#wpConfirmB, button[name=wpConfirmB], #mw-delete-submit button")
        browser.open(f"{address}/index.php?title=Special:Undelete/New_2")
        submit("restored", "button[name=restore], #mw-undelete-submit button")
        browser.open(f"{address}/index.php?title=Special:CreateAccount")
        browser.fill("#wpName2", "Guest")
        browser.fill("#wpPassword2", "another long secret")
        browser.fill("#wpRetype", "another long secret")
        submit("account", "#wpCreateaccount")
        self.maintain("runJobs.php")
        for special in ["RecentChanges&hidebots=0", "Watchlist", "Contributions/Keeper", "Log", "AllPages", "WhatLinksHere/Old_0",
                        "ListUsers", "Categories", "Search&search=text", "Statistics", "NewPages", "Moved"]:  # fmt: skip
            look(special, f"Special:{special}" if special != "Moved" else special)
        return shown


def normal(text, address):
    """Without what differs from one run to the next: keys, times and the address."""
    text = text.replace(address, "")
    text = re.sub(r"\d\d?:\d\d|\d+ \w+ 20\d\d|\b\d{8,}\b", "…", text)
    return text.strip()


def test_pages_are_as_before(server, tmp_path):
    native = Application(server, "wiki")
    wiki = Wiki(native, tmp_path)
    wiki.install()
    adopted = Application(server, f"{native.name}_adopted", native.name)
    adopted.widen()
    adopted.adopt("si", schema="mediawiki")
    assert adopted.obstacles == {}
    # The search casts the key of a text to integer.
    adopted.sql(next(undo for undo in adopted.undo if "mediawiki.text" in undo))
    shown = {}
    for application in native, adopted:
        wiki.application = application
        serve = ["php", "-d", "error_reporting=E_ALL&~E_DEPRECATED", "-S", "127.0.0.1:PORT", "-t", WIKI]
        with application.serving(*serve, environment=wiki.environment) as address, browsing() as browser:
            shown[application] = wiki.walk(browser, address)
            assert [error for error in browser.errors if "favicon" not in error] == []
    before, after = shown[native], shown[adopted]
    for what in before:
        assert before[what] == after[what], what
    assert "Well said" in before["saved Talk:New_0 5"] and "Moved" in before["moved"]
    references = [missing(*each) for each in REFERENCES]
    assert native.dangling(TEXTS, *references) == 0
    assert adopted.dangling(TEXTS, *references) == 0
    ids = adopted.tables_with_ids()
    assert "mediawiki.text" not in ids
    assert {"mediawiki.page", "mediawiki.revision", "mediawiki.content"} <= ids and native.tables_with_ids() == set()
    assert adopted.sql(f"SELECT count(*) >= 8 FROM mediawiki.revision WHERE rev_id > {LARGE}") == [(True,)]
    report("MediaWiki", pages=len(after), tables=len(ids))
