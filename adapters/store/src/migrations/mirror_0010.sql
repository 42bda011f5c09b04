-- Resources that changes deleted, and the time of the change, microseconds: an older list brings none of them back.
CREATE TABLE gone (uri TEXT PRIMARY KEY, changed INTEGER NOT NULL) STRICT, WITHOUT ROWID;
CREATE INDEX gone_changed ON gone (changed);
