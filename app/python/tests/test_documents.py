"""Tests of reading and writing documents."""

import gzip
import io
import json
import os
import pickle
import resource
import tempfile
import threading
import unittest
import urllib.request
from datetime import datetime, timezone
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any, Dict, Iterator, List, Tuple

import abreast
from served import ServedCase

RS = 'xmlns="http://www.sitemaps.org/schemas/sitemap/0.9" xmlns:rs="http://www.openarchives.org/rs/terms/"'
OLD_SET = (f'<urlset {RS} rs:type="changeset"><url><loc>http://h/a</loc>'
           '<lastmod rs:type="created">2026-03-01T09:00:00Z</lastmod><rs:size>5</rs:size></url>'
           "<url><loc>http://h/b</loc><expires>2026-03-01T09:05:00Z</expires></url></urlset>").encode()
ENTRY_POINT = b"""{"@context": "https://emm-spec.org/1.0/context.json", "type": "OrderedCollection", "id": "/emm",
  "first": {"type": "OrderedCollectionPage", "id": "/emm/2"}}"""
PAGES = {
    "/emm/2": b"""{"type": "OrderedCollectionPage", "id": "/emm/2", "next": "/emm/1", "orderedItems": [
      {"type": "Delete", "published": "2026-03-02T09:00:00Z", "id": "http://h/act/2", "object": "http://h/e/2"}]}""",
    "/emm/1": b"""{"type": "OrderedCollectionPage", "id": "/emm/1", "orderedItems": [
      {"type": "Move", "endTime": "2026-03-01T09:00:00Z", "object": {"id": "http://h/e/1",
       "url": "http://h/e/1.ttl"}, "target": "http://h/e/9"}]}""",
}
FEED = b"""<feed xmlns="http://www.w3.org/2005/Atom" xmlns:s="http://www.sdshare.org/2012/core/"><title>Coins</title>
  <entry><id>urn:1</id><s:resource>http://h/coin/7</s:resource><updated>2026-03-01T09:00:00Z</updated>
  <link rel="http://www.sdshare.org/2012/core/fragment" href="/f/7.ttl" type="text/turtle"/></entry></feed>"""


class Site:
    """Documents by path."""

    def __init__(self, documents: Dict[str, bytes]) -> None:
        self.requests: List[str] = []
        site = self

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                site.requests.append(self.path)
                body = documents.get(self.path)
                self.send_response(200 if body is not None else 404)
                self.send_header("Content-Length", str(len(body or b"")))
                self.end_headers()
                self.wfile.write(body or b"")

            def log_message(self, format: str, *args: object) -> None:
                pass

        self.server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self.server.server_address[1]}"
        threading.Thread(target=self.server.serve_forever, daemon=True).start()

    def close(self) -> None:
        self.server.shutdown()
        self.server.server_close()


def index_of(url: str, names: List[str]) -> bytes:
    entries = "".join(f"<sitemap><loc>{url}{name}</loc></sitemap>" for name in names)
    return (f'<sitemapindex {RS}><rs:md capability="resourcelist" at="2026-01-01T00:00:00Z"/>{entries}'
            "</sitemapindex>").encode()


def list_of(uris: List[str]) -> bytes:
    return abreast.ResourceList(({"uri": uri} for uri in uris), at="2026-01-01T00:00:00Z").to_bytes()


class DocumentTests(unittest.TestCase):
    def serve(self, documents: Dict[str, bytes]) -> Site:
        site = Site(documents)
        self.addCleanup(site.close)
        return site

    def test_documents_of_each_protocol_are_read(self) -> None:
        old = abreast.read(OLD_SET, url="http://h/changes.xml")
        self.assertEqual((old.protocol, old.kind), ("ResourceSync 0.1", "change set"))
        self.assertEqual([(entry.uri, entry.change, entry.datetime, entry.length) for entry in old.entries()],
                         [("http://h/a", "created", "2026-03-01T09:00:00Z", 5),
                          ("http://h/b", "deleted", "2026-03-01T09:05:00Z", None)])
        feed = abreast.read(FEED, url="http://h/feed")
        self.assertEqual((feed.protocol, feed.kind, feed.head.title), ("SDShare", "fragments feed", "Coins"))
        entry = next(feed.entries())
        self.assertEqual((entry.uri, entry.change, entry.id), ("http://h/coin/7", "updated", "urn:1"))
        self.assertEqual((entry.links[0].href, entry.links[0].type), ("http://h/f/7.ttl", "text/turtle"))
        page = abreast.read(PAGES["/emm/1"], url="http://h/emm/1")
        self.assertEqual((page.protocol, page.kind), ("Activity Streams", "Change Set"))
        moved = next(page.entries())
        self.assertEqual((moved.uri, moved.change, moved.datetime), ("http://h/e/1", "moved", "2026-03-01T09:00:00Z"))
        self.assertEqual([(link.rel, link.href) for link in moved.links],
                         [("url", "http://h/e/1.ttl"), ("target", "http://h/e/9")])
        kinds = ["Create", "Add", "Update", "as:Create", "Deprecate", "Remove", "Delete", "Move", "Refresh", "Offer"]
        items = [{"type": kind, "object": f"http://h/{number}", "endTime": "2026-03-01T09:00:00Z"}
                 for number, kind in enumerate(kinds)]
        page = abreast.read(json.dumps({"type": "OrderedCollectionPage", "orderedItems": items}).encode())
        self.assertEqual([entry.change for entry in page.entries()],
                         ["created", "added", "updated", "created", "deprecated", "removed", "deleted", "moved",
                          "refresh", "other"])
        with self.assertRaises(abreast.UsageError):
            next(abreast.read(FEED, url="http://h/feed").statements())
        turtle = b"@prefix e: <http://h/> . e:a e:p 'x'@en ."
        self.assertEqual(list(abreast.read(turtle)), [abreast.Statement("<http://h/a>", "<http://h/p>", '"x"@en')])
        patch = b"H id <uuid:00000000-0000-4000-8000-000000000000> .\nTX .\nA <http://h/a> <http://h/p> <http://h/b> .\n" \
                b"TC .\nTX .\nD <http://h/a> <http://h/p> <http://h/b> .\nTA .\n"
        read = abreast.read(patch)
        self.assertEqual(read.kind, "RDF Patch")
        self.assertEqual([statement.change for statement in read.statements()], ["added"])

    def test_a_plain_sitemap_and_gzip_are_read(self) -> None:
        plain = b'<urlset xmlns="http://www.sitemaps.org/schemas/sitemap/0.9"><url><loc>http://h/</loc></url></urlset>'
        with tempfile.TemporaryDirectory() as place:
            path = Path(place) / "sitemap.xml.gz"
            path.write_bytes(gzip.compress(plain))
            for source in (plain, gzip.compress(plain), path, str(path)):
                read = abreast.read(source)
                self.assertEqual((read.protocol, read.capability), ("Sitemaps", None))
                self.assertEqual([entry.uri for entry in read.entries()], ["http://h/"])

    def test_indexes_and_pages_are_followed_in_order(self) -> None:
        documents: Dict[str, bytes] = {**PAGES, "/emm": ENTRY_POINT}
        site = self.serve(documents)
        documents["/index"] = index_of(site.url, ["/1", "/2"])
        documents["/1"] = list_of(["http://h/a", "http://h/b"])
        documents["/2"] = gzip.compress(list_of(["http://h/c"]))
        alone = abreast.read(site.url + "/index")
        self.assertTrue(alone.is_index)
        self.assertEqual([entry.uri for entry in alone.entries()], [site.url + "/1", site.url + "/2"])
        read = abreast.read(site.url + "/index", follow_indexes=True)
        self.assertEqual([entry.uri for entry in read.entries()], ["http://h/a", "http://h/b", "http://h/c"])
        self.assertEqual([head.kind for head in read.documents], ["Resource List Index"] + 2 * ["Resource List"])
        pages = abreast.read(site.url + "/emm", follow_indexes=True)
        self.assertEqual([(entry.uri, entry.change) for entry in pages.entries()],
                         [("http://h/e/2", "deleted"), ("http://h/e/1", "moved")])

    def test_following_has_limits(self) -> None:
        documents: Dict[str, bytes] = {}
        site = self.serve(documents)
        other = self.serve({"/x": list_of(["http://h/x"])})
        documents["/circle"] = index_of(site.url, ["/circle"])
        documents["/other"] = index_of(other.url, ["/x"])
        documents["/gone"] = index_of(site.url, ["/404"])
        documents["/many"] = index_of(site.url, ["/1", "/2"])
        documents["/1"] = documents["/2"] = list_of(["http://h/a"])

        def fails(path: str, **options: object) -> str:
            with self.assertRaises(abreast.Error) as raised:
                list(abreast.read(site.url + path, follow_indexes=True, retries=0, **options))  # type: ignore[arg-type]
            self.assertTrue(str(raised.exception))
            return f"{type(raised.exception).__name__} {raised.exception.name}"

        self.assertEqual(fails("/circle"), "SourceError documents.circle")
        self.assertEqual(fails("/other"), "SourceError documents.host")
        self.assertEqual(other.requests, [])
        self.assertEqual(fails("/gone"), "SourceError http.status")
        self.assertEqual(fails("/many", max_documents=2), "LimitError documents.number")
        self.assertEqual(fails("/many", max_bytes=300), "LimitError documents.size")
        self.assertEqual(fails("/many", no_such=1), "UsageError usage")

    def test_faults_have_their_place_and_class(self) -> None:
        cut = f'<urlset {RS}><rs:md capability="changelist" from="2026-01-01T00:00:00Z"/><url>'.encode()
        for document, name in [(b"", "documents.kind"), (b"<html>", "documents.kind"), (cut, "xml.eof"),
                               (cut.replace(b"<url>", b"<url><loc>http://h/</loc></url></urlset>"), "rs.change"),
                               (b'{"type": "OrderedCollection"', "emm.document")]:
            with self.assertRaises(abreast.SourceError, msg=name) as raised:
                list(abreast.read(document))
            self.assertEqual(raised.exception.name, name, raised.exception)
        with self.assertRaises(abreast.UsageError):
            abreast.read("/no/such/file.xml")
        with self.assertRaises(abreast.TemporaryError):
            abreast.read("http://127.0.0.1:1/", retries=0)

    def test_a_reading_can_end_early(self) -> None:
        document = list_of([f"http://h/{number}" for number in range(50_000)])
        with abreast.read(document) as read:
            self.assertEqual(next(read.entries()).uri, "http://h/0")
        self.assertEqual(list(read), [])

    def test_memory_does_not_grow_with_a_document(self) -> None:
        def statements(count: int) -> Iterator[bytes]:
            for number in range(count):
                yield b'<http://h/%d> <http://h/p> "%s" .\n' % (number, b"x" * 200)

        with tempfile.TemporaryDirectory() as place:
            path = Path(place) / "dump.nt"
            with path.open("wb") as file:
                file.writelines(statements(400_000))
            self.assertGreater(path.stat().st_size, 80 << 20)
            before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
            self.assertEqual(sum(1 for _ in abreast.read(path)), 400_000)
            after = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        self.assertLess(after - before, 20 << 10, "KiB")

    def test_entries_are_records(self) -> None:
        document = (f'<urlset {RS}><rs:md capability="changelist" from="2026-01-01T00:00:00Z"/>'
                    '<url><loc>http://h/a</loc><rs:md change="updated" datetime="2026-01-02T00:00:00Z" '
                    'hash="md5:1584abdf8ebdc9802ac0c6a7402c03b6" length="3"/><rs:ln rel="up" href="http://h/"/></url>'
                    "</urlset>").encode()
        entry = next(abreast.read(document).entries())
        self.assertEqual(entry.hashes, {"md5": "1584abdf8ebdc9802ac0c6a7402c03b6"})
        self.assertEqual(entry.as_dict(), {
            "uri": "http://h/a", "change": "updated", "datetime": "2026-01-02T00:00:00Z", "length": 3,
            "hash": "md5:1584abdf8ebdc9802ac0c6a7402c03b6", "links": [{"rel": "up", "href": "http://h/"}]})
        self.assertEqual(pickle.loads(pickle.dumps(entry)), entry)
        self.assertEqual(abreast.Entry(**{**entry.as_dict(), "links": entry.links}), entry)
        with self.assertRaises(AttributeError):
            entry.uri = "x"  # type: ignore[misc]


class WriterTests(unittest.TestCase):
    def test_a_written_list_is_read_again(self) -> None:
        time = datetime(2026, 1, 2, 3, 4, 5, tzinfo=timezone.utc)
        entries = [abreast.Entry("http://h/a?b=1&c=<2>", lastmod="2026-01-01T00:00:00Z", length=5, type="text/plain",
                                 hash="sha-256:" + 64 * "0", links=(abreast.Link("via", "http://h/b", pri=2),))]
        data = abreast.ResourceList(entries, at=time, up="http://h/capabilitylist.xml").to_bytes()
        read = abreast.read(data)
        self.assertEqual((read.kind, read.at), ("Resource List", "2026-01-02T03:04:05Z"))
        self.assertEqual(list(read), entries)
        change = {"uri": "http://h/a", "change": "deleted", "datetime": time}
        read = abreast.read(abreast.ChangeList([change], from_=time, until=time).to_bytes())
        self.assertEqual((read.kind, read.from_, read.until), ("Change List",) + 2 * ("2026-01-02T03:04:05Z",))
        self.assertEqual(next(read.entries()).change, "deleted")

    def test_wrong_entries_are_refused(self) -> None:
        wrong: List[Tuple[Dict[str, Any], str]] = [
            ({"uri": "x"}, "absolute"), ({"uri": "http://h/", "lastmod": "now"}, "lastmod"),
            ({"uri": "http://h/", "size": 1}, "size"), ({"uri": "http://h/", "hash": "md5:0"}, "hash"),
            ({"uri": "http://h/", "change": "changed"}, "change"),
            ({"uri": "http://h/", "lastmod": datetime(2026, 1, 1)}, "time zone"),
            ({"uri": "http://h/", "links": [{"rel": "up"}]}, "links")]
        for entry, word in wrong:
            with self.assertRaises(abreast.UsageError, msg=str(entry)) as raised:
                abreast.ResourceList([{"uri": "http://h/1"}, entry]).to_bytes()
            self.assertIn(word, str(raised.exception))

    def test_an_iterator_is_written_once(self) -> None:
        entries = [{"uri": "https://h.example/a"}]
        once = abreast.ResourceList(iter(entries))
        self.assertIn(b"https://h.example/a", once.to_bytes())
        with self.assertRaisesRegex(abreast.UsageError, "already read"):
            once.to_bytes()
        again = abreast.ResourceList(entries)
        self.assertEqual(again.to_bytes(), again.to_bytes())

    def test_long_lists_have_an_index(self) -> None:
        def entries(count: int) -> Iterator[Dict[str, str]]:
            return ({"uri": f"http://h/{number}"} for number in range(count))

        with self.assertRaises(abreast.LimitError):
            abreast.ResourceList(entries(50_001)).to_bytes()
        with tempfile.TemporaryDirectory() as place:
            paths = abreast.ResourceList(entries(100_001), up="http://s/c.xml").write_parts(place, "http://s/lists")
            self.assertEqual([path.name for path in paths],
                             ["resourcelist.xml"] + [f"resourcelist-{number}.xml" for number in (1, 2, 3)])
            self.assertEqual(sorted(os.listdir(place)), sorted(path.name for path in paths))
            index = abreast.read(paths[0])
            self.assertEqual((index.kind, [entry.uri for entry in index.entries()]),
                             ("Resource List Index", [f"http://s/lists/resourcelist-{n}.xml" for n in (1, 2, 3)]))
            part = abreast.read(paths[3])
            self.assertEqual([(link.rel, link.href) for link in part.links],
                             [("up", "http://s/c.xml"), ("index", "http://s/lists/resourcelist.xml")])
            self.assertEqual([entry.uri for entry in part.entries()], ["http://h/100000"])
            report = abreast.validate(*paths, no_walk=True)
            self.assertEqual(report.errors, 0, report.findings)
            self.assertEqual(len(abreast.ResourceList(entries(50_000)).write_parts(place, "http://s/")), 1)

    def test_a_file_is_replaced_as_a_whole(self) -> None:
        def fails() -> Iterator[Dict[str, str]]:
            yield {"uri": "http://h/"}
            raise KeyError("mine")

        with tempfile.TemporaryDirectory() as place:
            path = Path(place) / "list.xml"
            abreast.ResourceList([{"uri": "http://h/a"}]).write(path)
            with self.assertRaises(KeyError):
                abreast.ResourceList(fails()).write(path)
            self.assertEqual([entry.uri for entry in abreast.read(path).entries()], ["http://h/a"])
            self.assertEqual(os.listdir(place), ["list.xml"])
            file = io.BytesIO()
            abreast.ResourceList([{"uri": "http://h/a"}]).write(file)
            self.assertTrue(file.getvalue().endswith(b"</urlset>\n"))


class ServedDocumentTests(ServedCase):
    def test_written_bytes_are_those_of_the_server(self) -> None:
        def taken(name: str) -> Tuple[bytes, abreast.Reader]:
            url = f"{self.server.url}papers/{name}"
            with urllib.request.urlopen(url) as answer:
                served: bytes = answer.read()
            return served, abreast.read(served)

        abreast.Source(self.server.url).upload("new.txt", "new\n")
        served, read = taken("resourcelist.xml")
        assert read.at is not None
        again = abreast.ResourceList(read.entries(), at=read.at, completed=read.completed, links=read.links)
        self.assertEqual(again.to_bytes(), served)
        served, read = taken("changelist.xml")
        assert read.from_ is not None
        changes = list(read.entries())
        self.assertEqual([change.uri[-7:] for change in changes], ["new.txt"])
        self.assertEqual(abreast.ChangeList(changes, from_=read.from_, until=read.until, links=read.links).to_bytes(),
                         served)


if __name__ == "__main__":
    unittest.main()
