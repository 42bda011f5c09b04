-- Files of a packed copy, appended to only. What stands beyond `length` was never acknowledged.
CREATE TABLE segment (
    number INTEGER PRIMARY KEY,
    name TEXT NOT NULL UNIQUE,
    length INTEGER NOT NULL         -- bytes that are whole and durable
) STRICT;

-- Where the newest record of each resource is; of a record that refers to another's bytes, also where those are.
CREATE TABLE packed (
    uri TEXT PRIMARY KEY,
    segment INTEGER NOT NULL,
    offset INTEGER NOT NULL,
    length INTEGER NOT NULL,
    of_segment INTEGER,
    of_offset INTEGER,
    of_length INTEGER
) STRICT, WITHOUT ROWID;
