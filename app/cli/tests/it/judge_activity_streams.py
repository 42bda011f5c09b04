"""Judges change feeds as an independent JSON-LD processor and RDF library read them.

Arguments: a folder with the documents (*.json), the context of Activity Streams, the description of
each entity as it is now (*.nt). Every document expands without loss, and the patches of an entity in
order make its description.
"""

import json
import pathlib
import sys

import pyoxigraph as ox
from pyld import jsonld

folder, activity_streams = pathlib.Path(sys.argv[1]), pathlib.Path(sys.argv[2])
GENID = "/.well-known/genid/"
AS = "https://www.w3.org/ns/activitystreams"
of_activity_streams = json.loads(activity_streams.read_text())["@context"]
# What the contexts of the specifications define.
draft = {"id": "@id", "type": "@type", "@vocab": AS + "#"}
draft |= {name: {"@type": "@id"} for name in ("partOf", "first", "last", "next", "prev", "href")}
draft |= {"orderedItems": {"@id": AS + "#items", "@container": "@list"}}
CONTEXTS = {
    AS: of_activity_streams,
    "https://emm-spec.org/1.0/context.json": {"id": "@id", "type": "@type", "Deprecate": "https://emm-spec.org/1.0/#Deprecate"},
    "https://ld4.github.io/entity_metadata_management/0.1/context.json": draft,
    "http://iiif.io/api/discovery/1/context.json": of_activity_streams,
}


def load(url, options):
    document = {"@context": CONTEXTS[url]}
    return {"contentType": "application/ld+json", "contextUrl": None, "documentUrl": url, "document": document}


def leaves(value):
    """The values in a document, the IRIs and types among them."""
    if isinstance(value, dict):
        return sum(leaves(inner) for name, inner in value.items() if name not in ("@context", "@language"))
    if isinstance(value, list):
        return sum(map(leaves, value))
    return 1


def expanded_leaves(value):
    if isinstance(value, dict):
        if "@value" in value:
            return 1
        for name in value:
            assert not name.startswith("_:"), f"{name} is not defined"
        for kind in value.get("@type", []):
            assert not kind.startswith("_:"), f"the type {kind} is not defined"
        return sum(map(expanded_leaves, value.values()))
    if isinstance(value, list):
        return sum(map(expanded_leaves, value))
    return 1


documents = sorted(folder.glob("*.json"))
patches = {}
for path in documents:
    document = json.loads(path.read_text())
    expanded = jsonld.expand(document, {"documentLoader": load, "base": document["id"]})
    assert leaves(document) == expanded_leaves(expanded), f"{path.name} loses values"
    for item in document.get("orderedItems", []):
        content = item.get("instrument", {}).get("content")
        if content:
            patches.setdefault(item["object"]["id"], {})[int(item["id"].rsplit("/", 1)[1])] = content


def parsed(text):
    return [(quad.subject, quad.predicate, quad.object) for quad in ox.parse(text.encode(), format=ox.RdfFormat.N_TRIPLES)]


def canonical(statements):
    def blank(term):
        if isinstance(term, ox.NamedNode) and GENID in term.value:
            return ox.BlankNode("g" + term.value.split(GENID)[1].replace("-", "x"))
        return term

    graph = ox.Dataset([ox.Quad(*map(blank, statement)) for statement in statements])
    graph.canonicalize(ox.CanonicalizationAlgorithm.RDFC_1_0)
    return sorted(map(str, graph))


rows = 0
for entity, texts in patches.items():
    statements = set()
    for number in sorted(texts):
        for row in texts[number].splitlines():
            kind, _, rest = row.partition(" ")
            if kind in "AD":
                rows += 1
                (statement,) = parsed(rest)
                change = statements.add if kind == "A" else statements.remove
                change(statement)
    name = entity.rsplit("/", 1)[1]
    now = folder / f"{name}.nt"
    expected = parsed(now.read_text()) if now.exists() else []
    assert canonical(statements) == canonical(expected), f"the patches of {entity} lead elsewhere"
assert rows > 0
print(len(documents), "documents,", len(patches), "entities,", rows, "rows")
