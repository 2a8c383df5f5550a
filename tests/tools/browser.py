# SPDX-License-Identifier: Apache-2.0
"""Headless Chromium for tests, by the DevTools protocol over a pipe: no port, no driver, no package."""
import base64
import json
import os
import shutil
import signal
import subprocess
import tempfile

NAMES = ["chromium", "chromium-browser", "google-chrome"]


def find():
    """The path of a browser, or None."""
    return next(filter(None, map(shutil.which, NAMES)), None)


class Browser:
    """One page. Exceptions that its scripts throw are collected in `errors`."""

    def __init__(self, width, height):
        # The browser's helpers end a little later than it does, and write to the last.
        self.profile = tempfile.TemporaryDirectory(ignore_cleanup_errors=True)
        read, self.to = os.pipe()
        self.back, write = os.pipe()

        def connect():  # Chromium reads commands from 3 and answers on 4
            os.dup2(read, 63)
            os.dup2(write, 64)
            os.dup2(63, 3)
            os.dup2(64, 4)

        self.process = subprocess.Popen(
            [find(), "--headless", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--no-first-run",
             "--remote-debugging-pipe", f"--user-data-dir={self.profile.name}", f"--window-size={width},{height}", "about:blank"],
            preexec_fn=connect, close_fds=False, start_new_session=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        os.close(read)
        os.close(write)
        self.received, self.count, self.errors, self.session = b"", 0, [], None
        pages = [t for t in self.call("Target.getTargets")["targetInfos"] if t["type"] == "page"]
        self.session = self.call("Target.attachToTarget", targetId=pages[0]["targetId"], flatten=True)["sessionId"]
        self.call("Runtime.enable")
        self.call("Page.enable")
        self.call("Emulation.setDeviceMetricsOverride", width=width, height=height, deviceScaleFactor=1, mobile=False)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        os.killpg(self.process.pid, signal.SIGKILL)
        self.process.wait()
        os.close(self.to)
        os.close(self.back)
        self.profile.cleanup()

    def _message(self):
        while b"\0" not in self.received:
            part = os.read(self.back, 1 << 20)
            if not part:
                raise RuntimeError("the browser ended")
            self.received += part
        message, self.received = self.received.split(b"\0", 1)
        return json.loads(message)

    def call(self, method, **params):
        self.count += 1
        request = {"id": self.count, "method": method, "params": params}
        if self.session:
            request["sessionId"] = self.session
        data = json.dumps(request).encode() + b"\0"
        while data:
            data = data[os.write(self.to, data):]
        while True:
            answer = self._message()
            if answer.get("method") == "Runtime.exceptionThrown":
                self.errors.append(answer["params"]["exceptionDetails"])
            if answer.get("id") == self.count:
                if "error" in answer:
                    raise RuntimeError(f"{method}: {answer['error']}")
                return answer["result"]

    def js(self, expression):
        """The value of an expression in the page; of a promise, what it is kept with."""
        result = self.call("Runtime.evaluate", expression=expression, returnByValue=True, awaitPromise=True)
        if "exceptionDetails" in result:
            raise RuntimeError(f"{expression}: {result['exceptionDetails']}")
        return result["result"].get("value")

    def frame(self):
        """Waits until what was asked for is drawn."""
        self.js("new Promise(done => requestAnimationFrame(() => requestAnimationFrame(done)))")

    def open(self, path):
        self.call("Page.navigate", url="file://" + os.path.realpath(path))
        self.js("new Promise(done => document.readyState === 'complete' ? done() : addEventListener('load', done))")
        self.frame()

    def mouse(self, kind, x, y, **more):
        self.call("Input.dispatchMouseEvent", type=kind, x=x, y=y, **more)
        self.frame()

    def click(self, x, y):
        self.mouse("mousePressed", x, y, button="left", clickCount=1)
        self.mouse("mouseReleased", x, y, button="left", clickCount=1)

    def screenshot(self, path):
        with open(path, "wb") as file:
            file.write(base64.b64decode(self.call("Page.captureScreenshot")["data"]))
