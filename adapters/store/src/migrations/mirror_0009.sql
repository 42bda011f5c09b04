-- Deprecated resources whose notice waits until their description is here.
CREATE TABLE deprecation (uri TEXT PRIMARY KEY) STRICT, WITHOUT ROWID;
