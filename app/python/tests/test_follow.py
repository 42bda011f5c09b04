"""Tests of changes without a copy."""

import hashlib
import signal
import subprocess
import sys
import unittest
from typing import List, Set

import abreast
from served import ServedCase


class FollowTests(ServedCase):
    def taken(self, count: int, **options: object) -> List[abreast.SourceChange]:
        found: List[abreast.SourceChange] = []
        with abreast.follow(self.server.url, state=self.server.root / "state", interval="1s",
                            **options) as changes:  # type: ignore[call-overload]
            for change in changes:
                found.append(change)
                if len(found) == count:
                    break
        return found

    def test_changes_continue_at_the_position(self) -> None:
        first = self.taken(20)
        self.assertEqual({change.change for change in first}, {"created"})
        self.server.write("paper-03.txt", "another\n")
        (self.server.folder / "paper-04.txt").unlink()
        found = {(change.uri[-12:], change.change) for change in self.taken(2)}
        self.assertEqual(found, {("paper-03.txt", "updated"), ("paper-04.txt", "deleted")})
        self.server.write("new.txt", "new\n")
        self.assertEqual([change.uri[-7:] for change in self.taken(1)], ["new.txt"])

    def test_no_change_is_lost_between_changes(self) -> None:
        # Each iterator stops after some changes: all are seen at least once, and in the end nothing is left.
        seen: Set[str] = set()
        for _ in range(3):
            seen.update(change.uri for change in self.taken(7))
        with self.assertRaises(KeyError), abreast.follow(self.server.url, state=self.server.root / "state") as changes:
            for change in changes:
                seen.add(change.uri)
                if len(seen) >= 10:
                    raise KeyError("mine")
        seen.update(change.uri for change in self.taken(20))
        self.assertEqual(len(seen), 20)
        self.server.write("end.txt", "end\n")
        self.assertEqual([change.uri[-7:] for change in self.taken(1)], ["end.txt"])

    def test_contents_are_verified(self) -> None:
        change = self.taken(1)[0]
        content = change.content()
        self.assertEqual(change.hashes["md5"], hashlib.md5(content).hexdigest())
        self.assertTrue(content.startswith(b"text "))
        self.server.write(change.uri.rsplit("/", 1)[-1], "changed meanwhile\n")

        def differs() -> bool:
            try:
                change.content()
            except abreast.SourceError as error:
                return error.name == "digest"
            return False

        self.wait_for("the other content", differs)
        with self.assertRaises(abreast.Error):
            change.content(max_bytes=2)

    def test_contents_can_come_with_the_changes(self) -> None:
        with abreast.follow(self.server.url, content="1K") as changes:
            change = next(changes)
            state = changes.state
            self.assertTrue(state.is_dir())
        self.server.close()
        self.assertTrue(change.content().startswith(b"text "))
        self.assertFalse(state.exists())

    def test_an_interrupt_ends_the_iterator(self) -> None:
        code = ("import abreast, signal, sys\n"
                "signal.signal(signal.SIGINT, signal.default_int_handler)\n"
                "changes = abreast.follow(sys.argv[1], state=sys.argv[2], interval='1h')\n"
                "try:\n    for change in changes: print(change.uri, flush=True)\n"
                "except KeyboardInterrupt: print('interrupted', flush=True)\n")
        child = subprocess.Popen([sys.executable, "-c", code, self.server.url, str(self.server.root / "state")],
                                 stdout=subprocess.PIPE, text=True)
        assert child.stdout is not None
        for _ in range(20):
            child.stdout.readline()
        child.send_signal(signal.SIGINT)
        try:
            rest = child.communicate(timeout=30)[0]
        finally:
            child.kill()
        self.assertEqual((rest, child.returncode), ("interrupted\n", 0))

    def test_wrong_options_are_refused(self) -> None:
        with self.assertRaises(abreast.UsageError):
            next(abreast.follow(self.server.url, content="2M"))
        with self.assertRaises(abreast.UsageError):
            next(abreast.follow(self.server.url, no_such=True))
        with self.assertRaises(abreast.SourceError):
            next(abreast.follow(self.server.url + "nothing.xml"))


if __name__ == "__main__":
    unittest.main()
