-- Changes of the copy that a command was not given yet, in their order. Kinds: 0 created, 1 updated, 2 deleted, 3 more changes than are stored.
CREATE TABLE waiting_change (
    number INTEGER PRIMARY KEY AUTOINCREMENT,
    uri TEXT NOT NULL,
    kind INTEGER NOT NULL,
    form INTEGER NOT NULL,          -- as in resource
    changed INTEGER,
    modified INTEGER,
    length INTEGER,
    digests BLOB NOT NULL,
    path TEXT                       -- in the copy; empty: the resource has none; NULL: not determined yet
) STRICT;
CREATE INDEX waiting_change_without_path ON waiting_change (number) WHERE path IS NULL;
