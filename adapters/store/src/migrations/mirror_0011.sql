-- Statements that were left out, since they are not valid: of the description of a resource, or of a file with many.
CREATE TABLE left_out (uri TEXT PRIMARY KEY, is_file INTEGER NOT NULL, statements INTEGER NOT NULL, fault TEXT NOT NULL) STRICT, WITHOUT ROWID;
