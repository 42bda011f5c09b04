-- State of one destination folder. Keys are URIs without fragment; instants are microseconds since 1970.
CREATE TABLE meta (
    key TEXT PRIMARY KEY,
    value TEXT NOT NULL
) STRICT, WITHOUT ROWID;

-- Documents read, for conditional requests.
CREATE TABLE document (
    url TEXT PRIMARY KEY,
    etag TEXT,
    last_modified TEXT,
    fingerprint INTEGER NOT NULL
) STRICT, WITHOUT ROWID;

-- Resources as kept in the folder.
CREATE TABLE resource (
    uri TEXT PRIMARY KEY,
    form INTEGER NOT NULL,          -- 0 plain name, 1 reserved leaf name
    modified INTEGER,               -- as listed
    length INTEGER NOT NULL,        -- of the bytes kept
    digests BLOB NOT NULL,          -- of the bytes kept
    changed INTEGER,                -- time of the change applied last
    etag TEXT,
    file_mtime INTEGER NOT NULL,    -- nanoseconds, as written
    verified INTEGER NOT NULL,      -- 1: the bytes had a listed digest
    epoch INTEGER NOT NULL          -- run that wrote the file
) STRICT, WITHOUT ROWID;

-- The plan being carried out, and what could not be: one row for each URI.
CREATE TABLE pending (
    uri TEXT PRIMARY KEY,
    action INTEGER NOT NULL,        -- 0 fetch, 1 set the time only, 2 delete
    modified INTEGER,
    length INTEGER,
    digests BLOB NOT NULL,
    unknown INTEGER NOT NULL,       -- 1: digests of unknown algorithms were listed
    changed INTEGER,
    state INTEGER NOT NULL,         -- 0 to do, 1 failed or held, 2 of an earlier plan, 3 waits for its parent folder
    attempts INTEGER NOT NULL       -- runs in which it failed
) STRICT, WITHOUT ROWID;
