"""The classes of `abreast.resync` beside those of the package `resync`."""

import json
import os
import subprocess
import sys
import unittest
from datetime import datetime
from pathlib import Path
from typing import Any, Dict, List

import abreast
from abreast.resync import ChangeList, Resource, ResourceList
from served import ServedCase

#: A Python that imports `resync`.
PEER = os.environ.get("ABREAST_TEST_PYTHON")

#: Reads with classes of the module `resync` or `abreast.resync`, and prints everything that is read.
READ = """
import json, sys
def shown(found):
    names = ("uri", "lastmod", "timestamp", "length", "md5", "sha256", "mime_type", "change", "datetime", "path")
    return {"len": len(found), "capability": found.capability, "md_at": found.md_at, "md_from": found.md_from,
            "up": found.up, "resources": [{name: getattr(each, name) for name in names} for each in found]}
url, old = sys.argv[1:]
first, other, changes = ResourceList(), ResourceList(), ChangeList()
first.read(url + "papers/resourcelist.xml")
changes.read(url + "papers/changelist.xml")
other.parse(str_data=open(old).read())
parts = [[each.uri for each in part] for part in other.compare(first)]
print(json.dumps({"list": shown(first), "changes": shown(changes), "compared": parts, "uris": sorted(first.uris())}))
"""

#: Sets attributes as programs with `resync` do, and prints them and the documents.
WRITE = """
import json, sys
names = ("uri", "lastmod", "timestamp", "length", "md5", "sha1", "sha256", "hash", "mime_type", "change", "datetime",
         "ts_datetime", "path", "md_at", "ts_at", "up", "describedby", "contents", "basename", "ln")
first = Resource("http://h/d/a.txt", 1234567890.5, 5)
first.lastmod = "2026-01-02T03:04:05Z"
first.timestamp = first.timestamp + 1.25
first.hash = "md5:" + 32 * "1" + " sha-256:" + 64 * "2"
first.md5 = 32 * "3"
first.mime_type = "text/plain"
first.link_set("describedby", "http://h/d/a.xml", type="application/xml")
first.describedby = "http://h/d/b.xml"
first.link_add("via", "http://h/v", pri="1")
first.link_add("via", "http://h/w")
first.md_at = "2026-01-02"
days = Resource("http://h/b", lastmod="2026-02")
other = Resource(resource=first, uri="http://h/c", change="updated", ts_datetime=1767323045.25)
other.ln = [dict(link) for link in other.ln]
other.up = "http://h/up"
other.datetime = "2026-01-02T03:04:05.5Z"
print(json.dumps([{name: getattr(each, name) for name in names} for each in (first, days, other)]))
resources = ResourceList()
resources.add(first)
resources.add([days])
resources.md_at = 1767323045
resources.md_completed = "2026-01-03T00:00:00Z"
resources.up = "http://h/capabilitylist.xml"
resources.link_set("describedby", "http://h/about")
print(json.dumps([resources.md_at, resources.up, resources["http://h/b"].uri, resources.uris(),
                  [each.uri for each in resources.resources], sorted(resources.hashes())]))
changes = ChangeList(md={"md_from": "2026-01-01T00:00:00Z"})
changes.add(other)
changes.add_changed_resources([first, days], change="deleted")
for each in changes.resources[1:]:
    each.datetime = "2026-01-02T03:04:06Z"
changes.add(Resource("http://h/c", change="deleted", datetime="2026-01-05T00:00:00Z"))
changes.add(Resource("http://h/n", change="created", datetime="2026-01-05T00:00:00Z"))
changes.add(Resource("http://h/n", change="deleted", datetime="2026-01-05T00:00:01Z"))
print(json.dumps([changes.prune_updates_before(1767323045.75), changes.prune_dupes(), changes.uris()]))
print(json.dumps([first == Resource("http://h/d/a.txt", lastmod=first.lastmod, length=6),
                  first == Resource("http://h/d/a.txt", timestamp=first.timestamp + 0.5), first == days,
                  first.equal(Resource("http://h/d/a.txt", timestamp=first.timestamp + 0.5), 0.25)]))
for each in (resources, changes):
    print(json.dumps(each.as_xml()))
resources.write(sys.argv[1])
"""


class ResyncTests(ServedCase):
    def lines(self, python: str, package: str, place: Path) -> List[Any]:
        code = f"from {package} import ChangeList, Resource, ResourceList\n" + WRITE
        done = subprocess.run([python, "-c", code, str(place)], capture_output=True, text=True)
        self.assertEqual(done.returncode, 0, done.stderr)
        return [json.loads(line) for line in done.stdout.splitlines()]

    @unittest.skipUnless(PEER, "ABREAST_TEST_PYTHON is not set")
    def test_attributes_are_set_as_in_resync(self) -> None:
        assert PEER is not None
        expected = self.lines(PEER, "resync", self.server.root / "theirs.xml")
        found = self.lines(sys.executable, "abreast.resync", self.server.root / "ours.xml")
        for theirs, ours in zip(expected[0], found[0]):
            for values in (theirs, ours):
                for name in ("lastmod", "datetime", "md_at"):
                    values[name] = abreast.resync._timestamp(values[name])
        self.assertEqual(found[:4], expected[:4])
        documents = [*zip(found[4:], expected[4:]),
                     [(self.server.root / name).read_text() for name in ("ours.xml", "theirs.xml")]]
        for ours, theirs in documents:
            mine, others = (abreast.read(text.encode()) for text in (ours, theirs))
            self.assertEqual(list(mine), list(others))
            self.assertEqual((mine.head.kind, mine.at, mine.completed, mine.from_, set(mine.links)),
                             (others.head.kind, others.at, others.completed, others.from_, set(others.links)))

    def test_differences_are_explained(self) -> None:
        with self.assertRaisesRegex(ImportError, "Client.*abreast.sync"):
            from abreast.resync import Client  # type: ignore[attr-defined]  # noqa: F401
        resources = ResourceList()
        with self.assertRaisesRegex(abreast.UsageError, "mapper.*write_parts"):
            ResourceList(mapper=None)
        with self.assertRaisesRegex(abreast.UsageError, "pretty_xml.*indented"):
            resources.pretty_xml = True
        with self.assertRaisesRegex(AttributeError, "as_xml_index.*write_parts"):
            resources.as_xml_index()
        with self.assertRaisesRegex(AttributeError, "no `size`"):
            Resource("http://h/a").size
        for name, value in [("lastmod", "yesterday"), ("change", "changed"), ("md5", "1"), ("colour", 1),
                            ("datetime", datetime(2026, 1, 1))]:
            with self.assertRaises((ValueError, AttributeError), msg=name):
                setattr(Resource("http://h/a"), name, value)
        with self.assertRaises(ValueError):
            Resource()
        resources.add(Resource(f"http://h/{number}") for number in range(3))
        self.assertEqual(len(resources.write_parts(self.server.root, "http://h/", 2)), 3)

    @unittest.skipUnless(PEER, "ABREAST_TEST_PYTHON is not set")
    def test_lists_are_read_as_resync_reads_them(self) -> None:
        assert PEER is not None
        old = self.server.root / "old.xml"
        old.write_bytes(abreast.ResourceList(abreast.Source(self.server.url).resources()).to_bytes())
        source = abreast.Source(self.server.url)
        source.upload("paper-01.txt", "another text\n")
        source.upload("paper-99.txt", "new\n")
        source.delete("paper-02.txt")
        arguments = [self.server.url, str(old)]
        said = subprocess.run([PEER, "-c", "from resync import ChangeList, ResourceList\n" + READ, *arguments],
                              capture_output=True, text=True)
        self.assertEqual(said.returncode, 0, said.stderr)
        expected: Dict[str, Any] = json.loads(said.stdout)
        read = "from abreast.resync import ChangeList, ResourceList\n" + READ
        said = subprocess.run([sys.executable, "-c", read, *arguments], capture_output=True, text=True)
        self.assertEqual(said.returncode, 0, said.stderr)
        self.assertEqual(json.loads(said.stdout), expected)
        self.assertEqual([len(part) for part in expected["compared"]], [18, 1, 1, 1])
        self.assertEqual([each["change"] for each in expected["changes"]["resources"]],
                         ["updated", "created", "deleted"])

    def test_lists_are_written(self) -> None:
        resources = ResourceList([Resource("http://h/b", length=3, md5=32 * "0"), Resource("http://h/a")],
                                 md={"md_at": "2026-01-01T00:00:00Z"})
        self.assertEqual([resource.uri for resource in resources], ["http://h/a", "http://h/b"])
        with self.assertRaises(ValueError):
            resources.add(Resource("http://h/a"))
        path = self.server.root / "list.xml"
        resources.write(path)
        again = ResourceList()
        self.assertEqual(again.read(path), 2)
        self.assertEqual(list(again), list(resources))
        self.assertEqual(again.as_xml(), Path(path).read_text())
        self.assertEqual((again.hashes(), "http://h/a" in again), ({"md5"}, True))
        with self.assertRaises(ValueError):
            ChangeList([Resource("http://h/a")])
        changes = ChangeList([Resource("http://h/a", change="updated", datetime="2026-01-01T00:00:00Z")])
        self.assertEqual([change.change for change in changes], ["updated"])
        self.assertIn('from="2026-01-01T00:00:00Z"', changes.as_xml())


if __name__ == "__main__":
    unittest.main()
