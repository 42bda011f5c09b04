-- Names that sets had in URLs, until a set has the name again: of a set that has another name now (`set_id`), or of a
-- set that was removed, and may be published at another address (`url`).
CREATE TABLE former_sets (
  slug   TEXT    NOT NULL PRIMARY KEY,
  time   INTEGER NOT NULL,
  set_id INTEGER,
  url    TEXT
) STRICT, WITHOUT ROWID;
