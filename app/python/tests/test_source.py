"""Tests of the client of the HTTP API."""

import io
import math
import subprocess
import threading
import time
import unittest
from pathlib import Path
from typing import Any, Dict, List

import abreast
from served import COMMAND, ServedCase


class SourceTests(ServedCase):
    def setUp(self) -> None:
        super().setUp()
        self.source = abreast.Source(self.server.url)

    def test_files_are_stored_and_deleted(self) -> None:
        path = self.server.root / "local.bin"
        path.write_bytes(b"\x00\xff")
        for name, data, stored in [("a b/ü.txt", "ü\n", "ü\n".encode()), ("b.bin", path, b"\x00\xff"),
                                   ("c.txt", b"bytes", b"bytes"), ("d.txt", io.BytesIO(b"file"), b"file")]:
            entry = self.source.upload(name, data)  # type: ignore[arg-type]
            self.assertEqual(entry.length, len(stored))
            self.assertEqual(self.source.download(name), stored)
            self.assertEqual((self.server.folder / name).read_bytes(), stored)
        found = self.source.resource("a b/ü.txt")
        assert found is not None
        self.assertEqual((found.uri, found.type), (self.server.url + "papers/r/a%20b/%C3%BC.txt", "text/plain"))
        self.assertEqual(self.source.delete("b.bin").recorded, 1)
        self.assertFalse((self.server.folder / "b.bin").exists())
        self.assertIsNone(self.source.resource("b.bin"))
        self.assertEqual([(change.uri.rsplit("/")[-1], change.change) for change in self.source.changes(3)],
                         [("d.txt", "created"), ("b.bin", "deleted")])

    def test_resources_are_those_of_the_set(self) -> None:
        info = self.source.info()
        self.assertEqual((info.name, info.count, info.state, self.source.set), ("papers", 20, "ready", "papers"))
        entries = list(self.source.resources())
        self.assertEqual(len(entries), 20)
        self.assertTrue(all(isinstance(entry, abreast.Entry) and entry.hashes["md5"] for entry in entries))

    def test_records_are_recorded_once(self) -> None:
        entries: List[Dict[str, Any]] = [
            {"uri": f"http://elsewhere.example/{number}", "length": number, "type": "text/plain",
             "hash": "md5:" + 32 * "1", "links": [{"rel": "describedby", "href": "http://elsewhere.example/"}]}
            for number in range(2_500)]
        done = self.source.record(iter(entries), idempotency_key="load-1")
        self.assertEqual((done.recorded, done.unchanged, done.head), (2_500, 0, 2_500))
        done = self.source.record(entries, idempotency_key="load-1")
        self.assertEqual((done.recorded, done.head), (0, 2_500))
        changes = self.source.changes(limit=700)
        read = list(changes)
        self.assertEqual((len(read), changes.position), (2_500, 2_500))
        self.assertEqual([entry.as_dict()["links"] for entry in read[:1]], [entries[0]["links"]])
        deleted = [abreast.Entry(**{**vars(read[0]), "change": "deleted"})]
        self.assertEqual(self.source.record(deleted).recorded, 1)
        self.assertEqual(self.source.record([]), abreast.Recorded(head=2_501))
        # Entries of the log can be recorded again as they are.
        self.assertEqual(self.source.record(read[1:3]).unchanged, 2)

    def test_a_position_is_saved_between_changes(self) -> None:
        for name in ("a", "b", "c"):
            self.source.upload(name, name)
        changes = self.source.changes()
        self.assertTrue(next(changes).uri.endswith("/a"))
        resumed = self.source.changes(changes.position)
        self.assertEqual([change.uri[-1] for change in resumed], ["b", "c"])
        since = abreast.Source(self.server.url).changes(since="2020-01-01T00:00:00Z")
        self.assertEqual(len(list(since)), 3)

    def test_changes_are_waited_for(self) -> None:
        began = time.monotonic()
        self.assertEqual(list(self.source.changes(wait=1)), [])
        self.assertGreater(time.monotonic() - began, 0.9)
        timer = threading.Timer(0.3, lambda: abreast.Source(self.server.url).upload("late", "late"))
        timer.start()
        change = next(self.source.changes(wait=math.inf))
        self.assertTrue(change.uri.endswith("/late"))
        timer.join()

    def test_errors_have_the_details_of_the_server(self) -> None:
        with self.assertRaises(abreast.UsageError) as raised:
            self.source.record([{"uri": "http://elsewhere.example/", "lastmod": "yesterday"}])
        problem = raised.exception.problem
        assert problem is not None
        self.assertEqual((problem.status, problem.name), (422, "field"))
        self.assertIn("lastmod", str(raised.exception))
        with self.assertRaisesRegex(abreast.UsageError, "did you mean `length`"):
            self.source.record([{"uri": "http://elsewhere.example/", "lenght": 3}])
        with self.assertRaises(abreast.UsageError) as raised:
            abreast.Source(self.server.url, set="other").info()
        self.assertEqual(raised.exception.name, "not-found")
        with self.assertRaises(abreast.GapError):
            next(self.source.changes(1_000))
        with self.assertRaises(abreast.UsageError):
            self.source.delete("no/such/file")
        self.source.record({"uri": "http://elsewhere.example/"}, idempotency_key="once")
        with self.assertRaises(abreast.UsageError) as raised:
            self.source.record({"uri": "http://elsewhere.example/2"}, idempotency_key="once")
        self.assertEqual(raised.exception.name, "key-reused")
        with self.assertRaises(abreast.TemporaryError):
            abreast.Source("http://127.0.0.1:1/", retries=0).sets()
        with self.assertRaises(abreast.UsageError):
            abreast.Source(self.server.url, no_such=True)

    def test_a_token_is_sent_and_never_shown(self) -> None:
        with self.assertRaises(abreast.AccessError) as raised:
            abreast.Source(self.server.url, token="abreast_wrong").info()
        self.assertEqual(raised.exception.name, "token-refused")
        self.assertNotIn("abreast_wrong", f"{raised.exception} {abreast.Source(self.server.url, token='abreast_wrong')}")
        made = subprocess.run([*COMMAND, "token", "create", "--name", "loader", "--scope", "write", "--data",
                               str(self.server.folder / ".abreast")],
                              capture_output=True, text=True, check=True)
        token = made.stdout.strip()

        loader = abreast.Source(self.server.url, token=token)

        def is_accepted() -> bool:
            try:
                return loader.upload("y.txt", "y").length == 1
            except abreast.AccessError:
                return False

        self.wait_for("the token", is_accepted)
        with self.assertRaises(abreast.AccessError) as raised:
            self.source.upload("x.txt", "x")
        self.assertEqual(raised.exception.name, "token-missing")


if __name__ == "__main__":
    unittest.main()
