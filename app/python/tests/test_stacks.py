"""The API from threads with the smallest stack, 128 KiB: the default of musl."""

import threading
from typing import Callable, List

import abreast

from served import ServedCase

SMALLEST = 128 << 10


class StackTests(ServedCase):
    def in_thread(self, run: Callable[[], None]) -> None:
        raised: List[BaseException] = []

        def catch() -> None:
            try:
                run()
            except BaseException as error:
                raised.append(error)

        before = threading.stack_size(SMALLEST)
        try:
            thread = threading.Thread(target=catch)
            thread.start()
        finally:
            threading.stack_size(before)
        thread.join()
        if raised:
            raise raised[0]

    def test_a_copy_is_made_followed_and_audited(self) -> None:
        def run() -> None:
            self.assertEqual(abreast.sync(self.server.url, self.copy).created, 20)
            changes = abreast.follow(self.server.url, self.copy)
            self.server.write("late.txt", "late")
            self.assertTrue(next(changes).uri.endswith("/late.txt"))
            changes.close()
            self.assertTrue(abreast.audit(self.server.url, self.copy, full=True).ok)

        self.in_thread(run)

    def test_changes_are_followed_without_a_copy(self) -> None:
        def run() -> None:
            changes = abreast.follow(self.server.url)
            self.assertTrue(next(changes).content())
            changes.close()

        self.in_thread(run)

    def test_documents_are_read_written_and_validated(self) -> None:
        def run() -> None:
            entries = list(abreast.read(self.server.url + "papers/resourcelist.xml"))
            self.assertEqual(len(entries), 20)
            written = abreast.ResourceList(entries, at="2026-01-01T00:00:00Z").to_bytes()
            self.assertEqual(len(list(abreast.read(written))), 20)
            self.assertTrue(abreast.validate(self.server.url).ok)

        self.in_thread(run)

    def test_a_server_is_used_and_its_errors_are_raised(self) -> None:
        def run() -> None:
            source = abreast.Source(self.server.url)
            source.upload("late", "late")
            self.assertTrue(next(source.changes(wait=10)).uri.endswith("/late"))
            with self.assertRaises(abreast.UsageError):
                abreast.Source("no address").info()
            with self.assertRaises(abreast.UsageError):
                abreast.sync(self.server.url, self.copy, max_time="soon")

        self.in_thread(run)
