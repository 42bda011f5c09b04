-- Digests of the descriptions that were stored in a SPARQL endpoint.
CREATE TABLE description (
    uri TEXT PRIMARY KEY,
    digest BLOB NOT NULL
) STRICT, WITHOUT ROWID;
-- Parts of segments that newer ones replace, until their bytes are overwritten.
CREATE TABLE superseded (
    segment INTEGER NOT NULL,
    offset INTEGER NOT NULL,
    length INTEGER NOT NULL,
    PRIMARY KEY (segment, offset)
) STRICT, WITHOUT ROWID;
-- Bytes of a segment that no longer count.
ALTER TABLE segment ADD COLUMN dead INTEGER NOT NULL DEFAULT 0;
