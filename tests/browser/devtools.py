"""Browser driven from Python: Chromium's DevTools protocol over a socket, with only the standard library.

It needs Chromium but no driver of the same version. It also reports events that a driver hides: every request and every
console line.
"""

from __future__ import annotations

import base64
import json
import os
import shutil
import socket
import struct
import subprocess
import tempfile
import time
import urllib.request
from collections.abc import Sequence
from pathlib import Path
from types import TracebackType
from typing import Any

NAMES = ("chromium", "chromium-browser", "google-chrome")
PATIENCE = 60.0
"""Seconds until the client gives up on a browser that does not answer."""


def find_browser() -> str | None:
    """Return the path of a Chromium on this machine, or None; ``ONNXSPEC_BROWSER`` overrides the search."""
    return next(filter(None, map(shutil.which, (os.environ.get("ONNXSPEC_BROWSER", ""), *NAMES))), None)


class PageError(Exception):
    """Exception thrown by a script in the page, or command refused by the browser."""


class Browser:
    """Browser window with a fresh profile; a context manager that removes all files it made."""

    def __init__(self, path: str) -> None:
        self.events: list[dict[str, Any]] = []
        self._number = 0
        self._profile = tempfile.mkdtemp(prefix="onnxspec-browser-")
        options = ["--headless=new", "--disable-gpu", "--no-first-run", "--disable-sync", "--hide-scrollbars"]
        options += ["--disable-background-networking", "--disable-component-update", "--disable-dev-shm-usage"]
        # In a container, root cannot start Chromium's sandbox; the pages are our own.
        options += ["--no-sandbox"] if hasattr(os, "geteuid") and os.geteuid() == 0 else []
        command = [path, *options, "--remote-debugging-port=0", f"--user-data-dir={self._profile}", "about:blank"]
        self._process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        self._socket: socket.socket | None = None
        try:
            self._connect()
        except BaseException:
            self.close()
            raise

    def __enter__(self) -> Browser:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        """End the browser and remove its profile."""
        if self._socket is not None:
            self._socket.close()
        self._process.terminate()
        try:
            self._process.wait(10)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
        shutil.rmtree(self._profile, ignore_errors=True)

    def _connect(self) -> None:
        port_file = Path(self._profile) / "DevToolsActivePort"
        deadline = time.monotonic() + PATIENCE
        while not (port_file.is_file() and len(port_file.read_text().split()) == 2):
            if self._process.poll() is not None or time.monotonic() > deadline:
                raise PageError("the browser did not start")
            time.sleep(0.05)
        port = int(port_file.read_text().split()[0])
        pages: list[dict[str, Any]] = []
        while not pages:
            with urllib.request.urlopen(f"http://127.0.0.1:{port}/json", timeout=PATIENCE) as answer:
                pages = [entry for entry in json.load(answer) if entry["type"] == "page"]
        path = pages[0]["webSocketDebuggerUrl"].split(str(port), 1)[1]
        self._socket = socket.create_connection(("127.0.0.1", port), timeout=PATIENCE)
        key = base64.b64encode(os.urandom(16)).decode()
        self._socket.sendall(
            f"GET {path} HTTP/1.1\r\nHost: 127.0.0.1:{port}\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n"
            f"Sec-WebSocket-Key: {key}\r\nSec-WebSocket-Version: 13\r\n\r\n".encode()
        )
        head = b""
        while b"\r\n\r\n" not in head:
            head += self._bytes(1)
        if b" 101 " not in head.split(b"\r\n", 1)[0]:
            raise PageError(f"the browser does not talk: {head!r}")
        for domain in ("Page", "Runtime", "Log", "Network"):
            self.command(f"{domain}.enable")

    def _bytes(self, count: int) -> bytes:
        assert self._socket is not None
        data = b""
        while len(data) < count:
            piece = self._socket.recv(count - len(data))
            if not piece:
                raise PageError("the browser has ended")
            data += piece
        return data

    def _message(self) -> dict[str, Any]:
        """Return the browser's next message, joined from its fragments."""
        data = b""
        while True:
            first, second = self._bytes(2)
            length = second & 127
            if length == 126:
                (length,) = struct.unpack(">H", self._bytes(2))
            elif length == 127:
                (length,) = struct.unpack(">Q", self._bytes(8))
            data += self._bytes(length)
            if first & 128:
                message: dict[str, Any] = json.loads(data)
                return message

    def command(self, method: str, **parameters: Any) -> dict[str, Any]:
        """Send a command and return its answer, storing events that arrive meanwhile.

        Raise PageError if the browser refuses it.
        """
        assert self._socket is not None
        self._number += 1
        data = json.dumps({"id": self._number, "method": method, "params": parameters}).encode()
        mask = os.urandom(4)
        if len(data) < 126:
            length = bytes([128 | len(data)])
        elif len(data) < 1 << 16:
            length = b"\xfe" + struct.pack(">H", len(data))
        else:
            length = b"\xff" + struct.pack(">Q", len(data))
        whole = int.from_bytes(data, "big") ^ int.from_bytes((mask * (len(data) // 4 + 1))[: len(data)], "big")
        self._socket.sendall(b"\x81" + length + mask + whole.to_bytes(len(data), "big"))
        while True:
            message = self._message()
            if message.get("id") == self._number:
                if "error" in message:
                    raise PageError(f"{method}: {message['error'].get('message')}")
                answer: dict[str, Any] = message["result"]
                return answer
            self.events.append(message)

    def js(self, expression: str) -> Any:
        """Evaluate an expression in the page and return its awaited value.

        Raise PageError with the error that it threw.
        """
        answer = self.command("Runtime.evaluate", expression=expression, awaitPromise=True, returnByValue=True)
        if "exceptionDetails" in answer:
            details = answer["exceptionDetails"]
            raise PageError(details.get("exception", {}).get("description") or details.get("text"))
        return answer["result"].get("value")

    def size(self, width: int, height: int, *, phone: bool = False) -> None:
        """Set the window's size in pixels; as a phone, it respects the page's viewport meta tag."""
        self.command(
            "Emulation.setDeviceMetricsOverride", width=width, height=height, deviceScaleFactor=1, mobile=phone
        )

    def system_theme(self, name: str) -> None:
        """Set the system's preferred colour scheme, ``light`` or ``dark``."""
        self.command("Emulation.setEmulatedMedia", features=[{"name": "prefers-color-scheme", "value": name}])

    def open(self, url: str) -> float:
        """Open an address in an empty window and return the seconds until the page is drawn. Clear earlier events."""
        self._go("about:blank")
        self.events.clear()
        start = time.monotonic()
        self._go(url)
        return time.monotonic() - start

    def _go(self, url: str) -> None:
        self.command("Page.navigate", url=url)
        loaded = "document.readyState === 'complete'"
        self.settle(loaded if url == "about:blank" else f"{loaded} && location.href !== 'about:blank'")

    def settle(self, condition: str = "true") -> None:
        """Wait until a condition holds in the page and its effects are drawn."""
        deadline = time.monotonic() + PATIENCE
        while True:
            try:
                if self.js(condition):
                    self.js("new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done)))")
                    return
            except PageError:  # no page exists between two pages
                pass
            if time.monotonic() > deadline:
                raise PageError(f"never came true: {condition}")
            time.sleep(0.02)

    def key(self, name: str, code: int = 0, text: str = "", modifiers: int = 0) -> None:
        """Press a key; ``text`` is the text that it types. Modifiers: 8 is shift."""
        both = {"key": name, "code": name, "windowsVirtualKeyCode": code, "modifiers": modifiers}
        self.command("Input.dispatchKeyEvent", type="keyDown", **both, **({"text": text} if text else {}))
        self.command("Input.dispatchKeyEvent", type="keyUp", **both)

    def click(self, selector: str) -> None:
        """Click with the mouse in the middle of the first element that matches a selector."""
        self.js(f"document.querySelector({json.dumps(selector)}).scrollIntoView({{block: 'center'}})")
        self.settle()
        centre = self.js(
            f"(() => {{ const b = document.querySelector({json.dumps(selector)}).getClientRects()[0];"
            " return [b.x + b.width / 2, b.y + b.height / 2]; })()"
        )
        for event in ("mousePressed", "mouseReleased"):
            self.command("Input.dispatchMouseEvent", type=event, x=centre[0], y=centre[1], button="left", clickCount=1)
        self.settle()

    def screenshot(self, path: Path, *, whole: bool = False) -> None:
        """Write the visible part, or the whole page, as PNG."""
        options: dict[str, Any] = {"captureBeyondViewport": whole}
        if whole:
            box = self.command("Page.getLayoutMetrics")["cssContentSize"]
            options["clip"] = {"x": 0, "y": 0, "width": box["width"], "height": min(box["height"], 16000), "scale": 1}
        path.write_bytes(base64.b64decode(self.command("Page.captureScreenshot", **options)["data"]))

    def complaints(self) -> list[str]:
        """Return the exceptions and console lines since the page was opened."""
        self.js("0")  # pending events arrive before the answer
        lines = []
        for event in self.events:
            parameters = event.get("params", {})
            if event["method"] == "Runtime.exceptionThrown":
                lines.append(str(parameters["exceptionDetails"].get("exception", {}).get("description")))
            elif event["method"] == "Log.entryAdded":
                lines.append(str(parameters["entry"]["text"]))
            elif event["method"] == "Runtime.consoleAPICalled":
                lines.append(" ".join(str(a.get("value")) for a in parameters["args"]))
        return lines

    def requests(self) -> Sequence[str]:
        """Return the addresses requested since the page was opened."""
        self.js("0")
        return [e["params"]["request"]["url"] for e in self.events if e["method"] == "Network.requestWillBeSent"]
