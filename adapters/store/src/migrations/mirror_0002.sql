-- Resources kept although the user's filters exclude them now: neither brought up to date nor deleted.
CREATE TABLE excluded (
    uri TEXT PRIMARY KEY
) STRICT, WITHOUT ROWID;
