"""A server of the installed package, for tests."""

import os
import re
import subprocess
import sys
import tempfile
import time
import unittest
import urllib.error
import urllib.request
from pathlib import Path
from typing import Callable, List

COMMAND = [sys.executable, "-m", "abreast"]


class Server:
    """`abreast serve` on a folder with some files."""

    def __init__(self) -> None:
        self.place = tempfile.TemporaryDirectory()
        self.root = Path(self.place.name)
        self.folder = self.root / "served" / "papers"
        self.folder.mkdir(parents=True)
        for number in range(20):
            self.write(f"paper-{number:02}.txt", f"text {number}\n")
        words = ["serve", str(self.folder), "--listen", "127.0.0.1:0", "--rescan", "1s", "--api-write"]
        self.process = subprocess.Popen([*COMMAND, *words], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True,
                                        env={**os.environ, "ABREAST_LOG_FORMAT": "text"})
        self.url = self.address()

    def address(self) -> str:
        assert self.process.stdout is not None
        lines: List[str] = []
        for line in self.process.stdout:
            lines.append(line)
            found = re.search(r"listening on +(http://\S+)", line)
            if found:
                return found.group(1)
        raise AssertionError("".join(lines))

    def is_ready(self) -> bool:
        try:
            with urllib.request.urlopen(self.url + "readyz", timeout=10) as answer:
                return b"is being read" not in answer.read()
        except urllib.error.HTTPError as error:
            error.close()
            return False

    def write(self, name: str, text: str) -> None:
        (self.folder / name).write_text(text)

    def close(self) -> None:
        self.process.terminate()
        self.process.wait(20)
        if self.process.stdout:
            self.process.stdout.close()
        self.place.cleanup()


class ServedCase(unittest.TestCase):
    """A test with a server that has read its folder."""

    server: Server

    def setUp(self) -> None:
        self.server = Server()
        self.addCleanup(self.server.close)
        self.wait_for("the folder is read", self.server.is_ready)
        self.copy = self.server.root / "copy"

    def wait_for(self, what: str, is_true: Callable[[], bool]) -> None:
        end = time.monotonic() + 30
        while not is_true():
            self.assertLess(time.monotonic(), end, what)
            time.sleep(0.05)
