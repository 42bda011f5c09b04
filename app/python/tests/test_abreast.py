"""Tests of the installed package against a server of it: `python -m unittest`, in an environment with the wheel."""

import logging
import os
import re
import signal
import subprocess
import sys
import threading
import time
import unittest
from pathlib import Path
from typing import Iterator, List

import abreast
from served import ServedCase

#: The guide, whose examples are run here.
GUIDE = os.environ.get("ABREAST_TEST_GUIDE")


class Tests(ServedCase):
    def test_a_copy_is_made_and_kept_in_sync(self) -> None:
        events: List[abreast.Event] = []
        report = abreast.sync(self.server.url, self.copy, progress=events.append)
        self.assertTrue(report.ok)
        self.assertEqual((report.created, report.mode), (20, "baseline"))
        self.assertEqual((self.copy / "paper-07.txt").read_text(), "text 7\n")
        changes = [event for event in events if isinstance(event, abreast.Change)]
        self.assertEqual(len(changes), 20)
        self.assertEqual({change.change for change in changes}, {"created"})
        self.assertIn("paper-07.txt", {change.path for change in changes})
        self.server.write("paper-07.txt", "other\n")
        (self.server.folder / "paper-08.txt").unlink()

        def is_applied() -> bool:
            abreast.sync(self.server.url, str(self.copy))
            return not (self.copy / "paper-08.txt").exists()

        self.wait_for("the deletion", is_applied)
        self.assertEqual((self.copy / "paper-07.txt").read_text(), "other\n")

    def test_options_are_those_of_the_command(self) -> None:
        report = abreast.sync(self.server.url, self.copy, include=["paper-0*"], dry_run=True, connections=2)
        self.assertTrue(report.dry_run)
        self.assertEqual((report.created, report.excluded), (10, 10))
        report = abreast.sync(self.server.url, self.copy, include="paper-0*", dry_run=True)
        self.assertEqual((report.created, report.excluded), (10, 10))
        report = abreast.sync(self.server.url, self.copy, exclude="paper-0*", dry_run=True)
        self.assertEqual((report.created, report.excluded), (10, 10))
        self.assertFalse((self.copy / "paper-01.txt").exists())
        for wrong in [{"no_such": True}, {"json": True}, {"connections": "many"}, {"state": object()}]:
            with self.assertRaises(abreast.UsageError, msg=str(wrong)) as raised:
                abreast.sync(self.server.url, self.copy, **wrong)  # type: ignore[arg-type]
            self.assertEqual(raised.exception.code, 2)
            self.assertIsNotNone(raised.exception.help)

    def test_an_audit_lists_the_differences(self) -> None:
        abreast.sync(self.server.url, self.copy)
        report = abreast.audit(self.server.url, self.copy, full=True)
        self.assertEqual((report.exit_code, report.same, report.changes), (0, 20, []))
        report.check()
        (self.copy / "paper-01.txt").write_text("altered here\n")
        (self.copy / "paper-02.txt").unlink()
        report = abreast.audit(self.server.url, self.copy, full=True)
        self.assertEqual((report.exit_code, report.different, report.missing), (1, 1, 1))
        self.assertEqual({(each.path, each.change) for each in report.changes},
                         {("paper-01.txt", "different"), ("paper-02.txt", "missing")})
        with self.assertRaises(abreast.DiffersError) as raised:
            report.check()
        self.assertIs(raised.exception.report, report)

    def test_a_validation_has_documents_and_findings(self) -> None:
        report = abreast.validate(self.server.url, sample="all")
        self.assertEqual(report.errors, 0, report.findings)
        self.assertIn("resourcelist", " ".join(document.url for document in report.documents))
        wrong = self.server.root / "list.xml"
        wrong.write_text('<urlset xmlns="http://www.sitemaps.org/schemas/sitemap/0.9"'
                         ' xmlns:rs="http://www.openarchives.org/rs/terms/"><rs:md capability="changelist"/>'
                         "<url><loc>http://h/a</loc></url></urlset>")
        report = abreast.validate(wrong)
        self.assertGreater(report.errors, 0)
        self.assertTrue(all(finding.rule and finding.cites for finding in report.findings))
        with self.assertRaises(abreast.DiffersError):
            report.check()

    def test_errors_have_classes(self) -> None:
        with self.assertRaises(abreast.TemporaryError) as raised:
            abreast.sync("http://127.0.0.1:1/", self.copy, retries=0)
        self.assertEqual((raised.exception.code, raised.exception.name), (5, "net.connect"))
        with self.assertRaises(abreast.TemporaryError):
            abreast.validate("http://127.0.0.1:1/", retries=0)
        with self.assertRaises(abreast.SourceError):
            abreast.sync(self.server.url + "nothing/here.xml", self.copy)
        self.assertTrue(issubclass(abreast.UsageError, ValueError))
        self.assertTrue(issubclass(abreast.DiskError, OSError))

    def test_an_incomplete_run_raises_with_its_report(self) -> None:
        abreast.sync(self.server.url, self.copy)
        for number in range(5):
            (self.server.folder / f"paper-{number:02}.txt").unlink()
        errors: List[abreast.Error] = []

        def is_held() -> bool:
            try:
                abreast.sync(self.server.url, self.copy, max_delete="1")
            except abreast.Error as error:
                errors.append(error)
            return bool(errors)

        self.wait_for("held deletions", is_held)
        self.assertIsInstance(errors[0], abreast.DeletionsHeldError)
        report = errors[0].report
        assert isinstance(report, abreast.SyncReport)
        self.assertGreater(report.held, 0)
        report = abreast.sync(self.server.url, self.copy, max_delete="1", check=False)
        self.assertEqual(report.exit_code, 7)
        self.assertTrue(report.problems)

    def test_changes_are_followed(self) -> None:
        names: List[str] = []
        with abreast.follow(self.server.url, self.copy, interval="1s") as changes:
            for change in changes:
                names.append(change.path)
                if len(names) == 20:
                    self.server.write("late.txt", "late\n")
                if change.path == "late.txt":
                    self.assertEqual((self.copy / "late.txt").read_text(), "late\n")
                    break
        self.assertEqual(len(names), 21)
        abreast.sync(self.server.url, self.copy)

    def test_an_exception_of_progress_ends_the_run(self) -> None:
        def fail(event: abreast.Event) -> None:
            raise KeyError("mine")

        with self.assertRaises(KeyError):
            abreast.sync(self.server.url, self.copy, progress=fail)
        self.assertEqual(abreast.sync(self.server.url, self.copy).exit_code, 0)

    def test_an_interrupt_ends_a_run(self) -> None:
        # A process in the background of a shell without job control ignores the signal.
        code = ("import abreast, signal, sys\n"
                "signal.signal(signal.SIGINT, signal.default_int_handler)\n"
                "changes = abreast.follow(sys.argv[1], sys.argv[2], interval='1h')\n"
                "try:\n    for change in changes: print(change.path, flush=True)\n"
                "except KeyboardInterrupt: print('interrupted', flush=True)\n")
        child = subprocess.Popen([sys.executable, "-c", code, self.server.url, str(self.copy)],
                                 stdout=subprocess.PIPE, text=True)
        assert child.stdout is not None
        first = child.stdout.readline()
        child.send_signal(signal.SIGINT)
        try:
            rest = child.communicate(timeout=30)[0]
        finally:
            child.kill()
        self.assertTrue(first.startswith("paper-"), first)
        self.assertTrue(rest.endswith("interrupted\n"), rest)
        self.assertEqual(child.returncode, 0)

    def test_other_threads_run_meanwhile(self) -> None:
        ticks, is_done = 0, threading.Event()

        def count() -> None:
            nonlocal ticks
            while not is_done.wait(0.01):
                ticks += 1

        thread = threading.Thread(target=count)
        thread.start()
        began = time.monotonic()
        with self.assertRaises(abreast.TemporaryError):
            abreast.sync("http://127.0.0.1:1/", self.copy, retries=1)
        seconds = time.monotonic() - began
        is_done.set()
        thread.join()
        self.assertGreater(ticks, seconds * 20)

    def test_the_log_is_of_python(self) -> None:
        with self.assertLogs("abreast", logging.DEBUG) as logs:
            abreast.sync(self.server.url, self.copy)
        self.assertTrue(all(record.name.startswith("abreast.") for record in logs.records))

    def test_the_command_is_the_program(self) -> None:
        script = Path(sys.executable).parent / "abreast"
        done = subprocess.run([script, "--version"], capture_output=True, text=True, check=True)
        self.assertEqual(done.stdout.split()[:2], ["abreast", abreast.__version__])
        done = subprocess.run([script, "sync", self.server.url, self.copy], capture_output=True, text=True)
        self.assertEqual(done.returncode, 0, done.stderr)
        done = subprocess.run([script, "sync", "nothing"], capture_output=True, text=True)
        self.assertEqual(done.returncode, 2, done.stderr)
        self.assertIn("help:", done.stderr)

    @unittest.skipUnless(GUIDE, "ABREAST_TEST_GUIDE is not set")
    def test_the_examples_of_the_guide_run(self) -> None:
        assert GUIDE is not None
        text = Path(GUIDE).read_text()
        examples = list(python_blocks(text))
        self.assertGreater(len(examples), 4)
        folder = os.getcwd()
        self.addCleanup(os.chdir, folder)
        os.chdir(self.server.root)
        globals_: dict = {}
        for example in examples:
            code = example.replace("https://papers.example.org/", self.server.url)
            exec(compile(code, GUIDE, "exec"), globals_)  # noqa: S102


def python_blocks(text: str) -> Iterator[str]:
    """The examples of a guide in Markdown."""
    yield from re.findall(r"^```python\n(.*?)^```$", text, re.MULTILINE | re.DOTALL)


if __name__ == "__main__":
    unittest.main()
