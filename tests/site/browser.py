"""Debian's Chromium, driven by its DevTools protocol through pipes, so that nothing but Python is needed."""

import base64
import contextlib
import json
import os
import shutil
import subprocess
import tempfile
import time

# Root may not use the sandbox; the pages are our own.
OPTIONS = [
    "--headless", "--remote-debugging-pipe", "--no-first-run", "--disable-gpu", "--disable-dev-shm-usage",
    "--disable-background-networking",
    *(["--no-sandbox"] if os.getuid() == 0 else []),
]  # fmt: skip
# Chromium reads commands from descriptor 3, and writes answers and events to descriptor 4.
PIPES = 'exec "$@" 3<&"$COMMANDS" 4>&"$ANSWERS" 2>/dev/null'


class HasNavigatedError(Exception):
    """The page that a script ran in is not there any more."""


class Browser:
    """A browser with one tab. It notes what pages ask for, and their errors."""

    def __init__(self):
        self.profile = tempfile.mkdtemp(prefix="flake-browser-")
        commands, self.commands = os.pipe()
        self.answers, answers = os.pipe()
        environment = os.environ | {"COMMANDS": str(commands), "ANSWERS": str(answers)}
        command = ["bash", "-c", PIPES, "bash", shutil.which("chromium"), *OPTIONS, f"--user-data-dir={self.profile}"]
        self.process = subprocess.Popen(command, env=environment, pass_fds=(commands, answers), start_new_session=True)
        os.close(commands)
        os.close(answers)
        self.number, self.rest, self.session = 0, b"", None
        self.requests, self.errors = [], []
        target = self.call("Target.createTarget", url="about:blank")["targetId"]
        self.session = self.call("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]
        for domain in "Page", "Runtime", "Network", "Log":
            self.call(f"{domain}.enable")
        self.size(1200, 900)

    def close(self):
        os.close(self.commands)
        self.process.wait(timeout=30)
        os.close(self.answers)
        shutil.rmtree(self.profile, ignore_errors=True)

    def call(self, method, **parameters):
        """Sends a command and returns its answer."""
        self.number += 1
        message = {"id": self.number, "method": method, "params": parameters}
        if self.session:
            message["sessionId"] = self.session
        os.write(self.commands, json.dumps(message).encode() + b"\0")
        while (answer := self.receive()).get("id") != self.number:
            self.note(answer)
        if "navigated" in str(answer.get("error")):
            raise HasNavigatedError
        assert "error" not in answer, f"{method}: {answer['error']}"
        return answer["result"]

    def receive(self):
        while b"\0" not in self.rest:
            read = os.read(self.answers, 1 << 20)
            assert read, "the browser has ended"
            self.rest += read
        message, self.rest = self.rest.split(b"\0", 1)
        return json.loads(message)

    def note(self, event):
        parameters = event.get("params", {})
        match event.get("method"):
            case "Network.requestWillBeSent":
                self.requests.append(parameters["request"]["url"])
            case "Runtime.exceptionThrown":
                self.errors.append(parameters["exceptionDetails"].get("exception", {}).get("description", "an exception"))
            case "Log.entryAdded" if parameters["entry"]["level"] == "error":
                self.errors.append(f"{parameters['entry']['text']} {parameters['entry'].get('url', '')}")

    def run(self, script):
        """Returns the value of an expression of the page, also of a promise."""
        found = self.call("Runtime.evaluate", expression=script, awaitPromise=True, returnByValue=True)
        assert "exceptionDetails" not in found, found["exceptionDetails"]["exception"].get("description")
        return found["result"].get("value")

    def until(self, condition, seconds=60):
        """Waits until an expression is true, also on the next page, and returns its value. An element is a dictionary."""
        end, value = time.monotonic() + seconds, None
        while value in (None, False, 0, ""):
            with contextlib.suppress(HasNavigatedError):
                value = self.run(condition)
            assert value or time.monotonic() < end, f"not true after {seconds} s: {condition}; errors: {self.errors}"
            time.sleep(0.02)
        return value

    def open(self, url):
        """Opens a page. Two addresses that differ in the fragment only would be the same document."""
        self.call("Page.navigate", url="about:blank")
        self.call("Page.navigate", url=url)
        self.until(f"location.href === {json.dumps(url)} && document.readyState === 'complete'")

    def click(self, selector):
        """Clicks with the mouse in the middle of an element, which has to be visible."""
        element = f"document.querySelector({json.dumps(selector)})"
        self.run(f"{element}.scrollIntoView({{block: 'center'}})")
        x, y = self.run(f"(({{x, y, width, height}}) => [x + width / 2, y + height / 2])({element}.getBoundingClientRect())")
        for kind in "mousePressed", "mouseReleased":
            self.call("Input.dispatchMouseEvent", type=kind, x=x, y=y, button="left", clickCount=1)

    def fill(self, selector, text):
        """Replaces what a field holds, as one who pastes."""
        self.run(f"(field => (field.focus(), field.select()))(document.querySelector({json.dumps(selector)}))")
        self.call("Input.insertText", text=text)

    def type(self, text):
        """Presses a key for each character."""
        for character in text:
            self.call("Input.dispatchKeyEvent", type="keyDown", text=character, key=character)
            self.call("Input.dispatchKeyEvent", type="keyUp", key=character)

    def size(self, width, height):
        self.call("Emulation.setDeviceMetricsOverride", width=width, height=height, deviceScaleFactor=1, mobile=False)

    @contextlib.contextmanager
    def network(self, bytes_per_second=-1, offline=False):
        """For a while, the network is slow or away, and nothing comes from the browser's cache."""

        def be(offline, speed, without_cache):
            self.call("Network.setCacheDisabled", cacheDisabled=without_cache)
            conditions = {"offline": offline, "latency": 0, "downloadThroughput": speed, "uploadThroughput": -1}
            self.call("Network.emulateNetworkConditions", **conditions)

        be(offline, bytes_per_second, True)
        try:
            yield
        finally:
            be(False, -1, False)

    def prefer(self, scheme):
        """Sets what the visitor's system prefers: light or dark."""
        self.call("Emulation.setEmulatedMedia", features=[{"name": "prefers-color-scheme", "value": scheme}])

    def picture(self, selector=None):
        """Returns a PNG of the window, or of an element in it."""
        clip = {}
        if selector:
            element = f"document.querySelector({json.dumps(selector)})"
            self.run(f"{element}.scrollIntoView({{block: 'center'}})")
            rectangle = "({x, y, width, height}) => ({x: x + scrollX, y: y + scrollY, width, height})"
            box = self.run(f"({rectangle})({element}.getBoundingClientRect())")
            clip = {"clip": box | {"scale": 1}}
        return base64.b64decode(self.call("Page.captureScreenshot", format="png", **clip)["data"])
