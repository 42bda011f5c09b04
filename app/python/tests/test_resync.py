"""The classes of `abreast.resync` beside those of the package `resync`."""

import json
import os
import subprocess
import sys
import unittest
from pathlib import Path
from typing import Any, Dict

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


class ResyncTests(ServedCase):
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
                                 md={"at": "2026-01-01T00:00:00Z"})
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
