"""What does resync, the ResourceSync library in Python, read in a document of ours?

usage: python read_with_resync.py FILE

Prints one JSON object: capability and other attributes of the document, its links, whether it is an index,
and its entries in the document's order. Fails when resync cannot read the document.
"""

import json
import sys

from resync.resource_container import ResourceContainer
from resync.sitemap import Sitemap

ENTRY_FIELDS = ("uri", "lastmod", "length", "md5", "sha1", "sha256", "mime_type", "change", "datetime", "path",
                "md_at", "md_completed", "md_from", "md_until", "capability")


class Entries(ResourceContainer):
    """Keeps every entry in order, where resync's own lists sort or merge them."""

    def __init__(self):
        super().__init__(resources=[])
        self.resources = []

    def add(self, resource, replace=False):
        self.resources.append(resource)


def entry(resource):
    fields = {name: getattr(resource, name, None) for name in ENTRY_FIELDS}
    fields["links"] = resource.ln or []
    return {name: value for name, value in fields.items() if value not in (None, [])}


def main(path):
    entries = Entries()
    sitemap = Sitemap()
    with open(path, "rb") as document:
        sitemap.parse_xml(document, resources=entries)
    json.dump({
        "index": sitemap.parsed_index,
        "md": dict(entries.md),
        "links": entries.ln,
        "entries": [entry(resource) for resource in entries.resources],
    }, sys.stdout, default=str)
    print()


if __name__ == "__main__":
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    main(sys.argv[1])
