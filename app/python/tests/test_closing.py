"""Tests of `close()` from another thread, for every class of the package that has it."""

import asyncio
import math
import signal
import socket
import subprocess
import sys
import threading
import time
import unittest
from typing import Any, Callable, Dict, List

import abreast
from abreast import _abreast
from served import ServedCase

#: A change list that never ends: the server sends the first entries, and holds the connection.
ENDLESS = (b"HTTP/1.1 200 OK\r\nContent-Type: application/xml\r\nContent-Length: 9000000\r\n\r\n"
           b'<urlset xmlns="http://www.sitemaps.org/schemas/sitemap/0.9"><url><loc>http://h/a</loc></url>\n'
           + b"<!-- " + b"x" * 100_000 + b" -->")


class Holding:
    """A server that answers and then holds its connections."""

    def __init__(self, answer: bytes) -> None:
        self.listener = socket.create_server(("127.0.0.1", 0))
        self.url = f"http://127.0.0.1:{self.listener.getsockname()[1]}/"
        self.held: List[socket.socket] = []
        threading.Thread(target=self.run, args=(answer,), daemon=True).start()

    def run(self, answer: bytes) -> None:
        while True:
            try:
                connection = self.listener.accept()[0]
            except OSError:
                return
            self.held.append(connection)
            connection.recv(10_000)
            connection.sendall(answer)

    def close(self) -> None:
        self.listener.close()
        for connection in self.held:
            connection.close()


class ClosingTests(ServedCase):
    def setUp(self) -> None:
        super().setUp()
        self.endless = Holding(ENDLESS)
        self.addCleanup(self.endless.close)

    def rows(self) -> Dict[str, Callable[[], Any]]:
        """For each class with `close`, an object of which `next` waits after some events."""
        state = f"--state={self.server.root / 'native'}"
        return {
            "abreast.Changes": lambda: abreast.Source(self.server.url).changes(wait=math.inf),
            "abreast.Follower": lambda: abreast.follow(self.server.url, self.copy, interval="1h"),
            "abreast.Reader": lambda: abreast.read(self.endless.url),
            "abreast.SourceChanges": lambda: abreast.follow(self.server.url, interval="1h"),
            "_abreast.Following": lambda: _abreast.Following(["--interval=1h", "--", self.server.url,
                                                              str(self.server.root / "other")]),
            "_abreast.Reading": lambda: _abreast.Reading(["--", self.endless.url], None, None, False),
            "_abreast.Streaming": lambda: _abreast.Streaming([state, "--interval=1h", "--", self.server.url, "-"]),
        }

    def test_every_class_can_be_closed_while_a_thread_waits(self) -> None:
        classes = {f"{module.__name__.rsplit('.')[-1]}.{name}" for module in (abreast, _abreast)
                   for name, value in vars(module).items() if isinstance(value, type) and hasattr(value, "close")}
        rows = self.rows()
        # `Http` has no `next`; `Changes` uses its `close`.
        self.assertEqual(set(rows), classes - {"_abreast.Http"})
        for name, made in rows.items():
            with self.subTest(name):
                self.ends_when_closed(made())

    def ends_when_closed(self, iterator: Any) -> None:
        ended: List[object] = []

        def run() -> None:
            try:
                if hasattr(iterator, "__next__"):
                    for _ in iterator:
                        pass
                else:
                    while iterator.next() is not None:
                        if hasattr(iterator, "accept"):
                            iterator.accept()
                ended.append("ended")
            except BaseException as error:
                ended.append(error)

        thread = threading.Thread(target=run, daemon=True)
        thread.start()
        # The thread waits once the events that are there were taken.
        thread.join(1)
        self.assertEqual(ended, [])
        began = time.monotonic()
        closers = [threading.Thread(target=iterator.close, daemon=True) for _ in range(2)]
        for closer in closers:
            closer.start()
        for each in [thread, *closers]:
            each.join(10)
            self.assertFalse(each.is_alive())
        self.assertLess(time.monotonic() - began, 1)
        self.assertEqual(ended, ["ended"])
        iterator.close()
        if hasattr(iterator, "__next__"):
            self.assertEqual(list(iterator), [])
        else:
            self.assertIsNone(iterator.next())

    def test_the_copy_is_free_after_any_close(self) -> None:
        changes = abreast.follow(self.server.url, self.copy, interval="1h")
        self.assertIsInstance(next(changes), abreast.Change)
        closers = [threading.Thread(target=changes.close) for _ in range(3)]
        for closer in closers:
            closer.start()
        changes.close()
        self.assertTrue(abreast.sync(self.server.url, self.copy).ok)
        for closer in closers:
            closer.join()

    def test_changes_of_a_closed_iterator_come_again(self) -> None:
        state = self.server.root / "state"
        changes = abreast.follow(self.server.url, state=state, interval="1h")
        next(changes)
        closer = threading.Thread(target=changes.close)
        closer.start()
        closer.join()
        # A closed iterator confirms nothing.
        self.assertEqual(list(changes), [])
        with abreast.follow(self.server.url, state=state, interval="1h") as again:
            self.assertEqual(len({next(again).uri for _ in range(20)}), 20)

    def test_a_cancelled_task_leaves_an_iterator_that_can_be_closed(self) -> None:
        async def run() -> float:
            with abreast.follow(self.server.url, state=self.server.root / "state", interval="1h") as changes:
                for _ in range(20):
                    await asyncio.to_thread(next, changes, None)
                with self.assertRaises(asyncio.TimeoutError):
                    await asyncio.wait_for(asyncio.to_thread(next, changes, None), 0.2)
                return time.monotonic()

        began = asyncio.run(run())
        self.assertLess(time.monotonic() - began, 1)

    def test_a_signal_handler_may_close_the_iterator(self) -> None:
        code = ("import abreast, signal, sys\n"
                "changes = abreast.follow(sys.argv[1], state=sys.argv[2], interval='1h')\n"
                "signal.signal(signal.SIGTERM, lambda *_: changes.close())\n"
                "for change in changes: print(change.uri, flush=True)\n"
                "print('closed')\n")
        self.assertEqual(self.child(code, signal.SIGTERM), "closed\n")

    def test_an_interrupt_in_a_with_block_frees_the_copy(self) -> None:
        code = ("import abreast, signal, sys\n"
                "signal.signal(signal.SIGINT, signal.default_int_handler)\n"
                "try:\n"
                "  with abreast.follow(sys.argv[1], sys.argv[2], interval='1h') as changes:\n"
                "    for change in changes: print(change.uri, flush=True)\n"
                "except KeyboardInterrupt:\n"
                "  print(abreast.sync(sys.argv[1], sys.argv[2]).ok)\n")
        self.assertEqual(self.child(code, signal.SIGINT), "True\n")

    def child(self, code: str, number: signal.Signals) -> str:
        """The output after a signal that follows the 20 changes."""
        child = subprocess.Popen([sys.executable, "-c", code, self.server.url, str(self.server.root / "place")],
                                 stdout=subprocess.PIPE, text=True)
        assert child.stdout is not None
        for _ in range(20):
            child.stdout.readline()
        child.send_signal(number)
        try:
            rest: str = child.communicate(timeout=30)[0]
        finally:
            child.kill()
        self.assertEqual(child.returncode, 0)
        return rest


if __name__ == "__main__":
    unittest.main()
