-- Earlier states of resources, and who needs which kept bytes.

-- Does the set keep versions, since which position, how many bytes, and up to which position is each bound of its
-- policy applied?
ALTER TABLE sets ADD COLUMN versions INTEGER NOT NULL DEFAULT 0;
ALTER TABLE sets ADD COLUMN begun INTEGER;
ALTER TABLE sets ADD COLUMN kept_bytes INTEGER NOT NULL DEFAULT 0;
ALTER TABLE sets ADD COLUMN counted_as INTEGER;
ALTER TABLE sets ADD COLUMN counted INTEGER NOT NULL DEFAULT 0;
ALTER TABLE sets ADD COLUMN aged INTEGER NOT NULL DEFAULT 0;
ALTER TABLE sets ADD COLUMN sized INTEGER NOT NULL DEFAULT 0;

-- A state since some time; not there since then when modified is NULL. What was imported has position 0 and the
-- least time there is, and counts from the creation of its set.
CREATE TABLE versions (
  set_id     INTEGER NOT NULL,
  key        TEXT    NOT NULL,
  time       INTEGER NOT NULL,
  position   INTEGER NOT NULL,
  modified   INTEGER,
  length     INTEGER,
  media_type TEXT,
  encoding   TEXT,
  digests    BLOB,
  content    BLOB,
  PRIMARY KEY (set_id, key, time)
) STRICT, WITHOUT ROWID;

-- How many rows of resources and versions name kept bytes. With none, the bytes may be removed, then the row.
CREATE TABLE contents (
  id     BLOB    NOT NULL,
  set_id INTEGER NOT NULL,
  length INTEGER NOT NULL,
  needed INTEGER NOT NULL,
  PRIMARY KEY (id, set_id)
) STRICT, WITHOUT ROWID;
CREATE INDEX unneeded_contents ON contents (id) WHERE needed = 0;
