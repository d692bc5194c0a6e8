"""The reader on IDs that people have, most of them published with their times: wild.csv has what it says of each."""

import csv
import datetime
import json
import re
from pathlib import Path

import pytest

from conftest import HTML

with Path(__file__).with_name("wild.csv").open() as lines:
    WILD = list(csv.DictReader(lines))
EPOCHS = {"twitter": (1288834974657, 22), "discord": (1420070400000, 22), "instagram": (1314220021721, 23), "mastodon": (0, 16)}


@pytest.fixture
def reader(browser, address):
    browser.open(f"{address}/read-an-id.html")
    browser.until("document.querySelector('#reader[data-ready]')")
    return browser


def said(browser, text):
    """Pastes a text, and returns what the page says of it."""
    browser.run("document.querySelector('#said').textContent = ''")
    browser.fill("#id", text)
    return browser.until("document.querySelector('#said').textContent")


def test_ids_from_the_wild(reader):
    assert len(WILD) >= 60
    found = {row["text"]: said(reader, row["text"]) for row in WILD}
    wrong = [(row, found[row["text"]]) for row in WILD if not found[row["text"]].startswith(row["says"])]
    assert not wrong, "\n".join(f"{row['text']}: {says}, not {row['says']}" for row, says in wrong)


def test_the_times_of_that_table_are_those_of_the_epochs():
    """A table that was copied from the page would show only that the page does not change."""
    checked = 0
    for row in WILD:
        number, told = re.search(r"\d{17,19}(?!.*/\d)", row["text"]), re.search(r"(\w+): (\d{4}-\S+(?: \S+)?)$", row["says"])
        if number and told and told[1] in EPOCHS:
            epoch, width = EPOCHS[told[1]]
            at = datetime.datetime.fromtimestamp(((int(number[0]) >> width) + epoch) / 1000, datetime.UTC)
            assert at.isoformat(" ").startswith(told[2]), row
            checked += 1
    assert checked > 25


def test_a_typeid_is_no_public_id(reader):
    for row in WILD:
        if "TypeID" in row["says"]:
            said(reader, row["text"])
            assert "public ID" not in reader.run("document.querySelector('#answer').textContent")


def test_examples_and_the_platform_can_be_chosen(reader):
    for button in reader.run("[...document.querySelectorAll('.examples button')].map(button => button.value)"):
        reader.run("document.querySelector('#said').textContent = ''")
        reader.click(f".examples button[value='{button}']")
        text = reader.until("document.querySelector('#said').textContent")
        assert not text.startswith("Unknown") or button == "0AWE5HZP3SKTT", text
    said(reader, "175928847299117063")
    reader.run("(as => (as.value = 'twitter', as.dispatchEvent(new Event('input'))))(document.querySelector('#as'))")
    reader.until("document.querySelector('#said').textContent.startsWith('twitter: 2012-03-03 13:01:20')")
    assert reader.run("document.querySelector('.reading').dataset.layout") == "twitter"
    assert reader.run("document.querySelector('.reading').open")


def test_the_address_follows_and_is_followed(reader, address):
    said(reader, "175928847299117063")
    assert reader.run("location.hash") == "#175928847299117063"
    reader.run("location.hash = '1541815603606036480&as=discord'")
    reader.until("document.querySelector('#said').textContent.startsWith('discord: 2026-08-25')")
    assert reader.run("document.querySelector('#id').value") == "1541815603606036480"
    reader.fill("#id", "https://x.com/a/status/20")
    reader.until("location.hash.includes('x.com')")
    reader.open(reader.run("location.href"))
    reader.until("document.querySelector('#id').value === 'https://x.com/a/status/20'")
    assert reader.run("document.querySelector('#as').value") == "discord"


def test_times_are_local_and_relative_and_can_be_copied(browser, address):
    browser.call("Emulation.setTimezoneOverride", timezoneId="Asia/Tokyo")
    browser.call("Browser.grantPermissions", permissions=["clipboardReadWrite", "clipboardSanitizedWrite"])
    browser.open(f"{address}/read-an-id.html#175928847299117063")
    text = browser.until("document.querySelector('.nearby')?.textContent")
    assert "years ago, Apr 30, 2016, 8:18:25" in text and "Asia/Tokyo" in text
    browser.click(".reading[open] .copy")
    assert browser.until("navigator.clipboard.readText()") == "175928847299117063"
    browser.click("#share")
    browser.until("document.querySelector('#share').textContent === 'Copied'")
    assert browser.run("navigator.clipboard.readText()") == f"{address}/read-an-id.html#175928847299117063"
    browser.call("Emulation.setTimezoneOverride", timezoneId="")


def test_the_file_needs_no_network(browser):
    with browser.network(offline=True):
        browser.open((HTML / "flake-reader.html").as_uri() + "#01ARZ3NDEKTSV4RRFFQ69G5FAV")
        browser.until("document.querySelector('#said').textContent.startsWith('ULID')")
        assert said(browser, "103270115826048975").startswith("Most likely mastodon")
        assert browser.run("location.hash") == "#103270115826048975"


@pytest.mark.parametrize(("page", "says"), [
    ("read-an-id.html", "Reading an ID needs JavaScript"),
    ("flake-reader.html", "Reading an ID needs JavaScript"),
    ("playground.html", "Running the steps needs JavaScript"),
])  # fmt: skip
def test_without_javascript_a_page_says_what_it_needs(browser, address, page, says):
    browser.call("Emulation.setScriptExecutionDisabled", value=True)
    try:
        browser.call("Page.navigate", url=f"{address}/{page}")
        browser.until(f"document.body?.innerText.includes({json.dumps(says)})")
    finally:
        browser.call("Emulation.setScriptExecutionDisabled", value=False)
