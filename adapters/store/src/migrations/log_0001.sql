-- Sets, their logs and the tables of resources that the logs imply.
-- Instants are microseconds since 1970, UTC. Keys compare as bytes.

CREATE TABLE sets (
  id           INTEGER PRIMARY KEY,
  slug         TEXT    NOT NULL UNIQUE,
  created      INTEGER NOT NULL,
  importing    INTEGER NOT NULL,
  page_changes INTEGER NOT NULL,
  page_age     INTEGER NOT NULL
) STRICT;

CREATE TABLE resources (
  set_id     INTEGER NOT NULL,
  key        TEXT    NOT NULL,
  position   INTEGER NOT NULL,
  modified   INTEGER NOT NULL,
  length     INTEGER,
  media_type TEXT,
  encoding   TEXT,
  digests    BLOB    NOT NULL,
  links      TEXT,
  witness    BLOB    NOT NULL,
  PRIMARY KEY (set_id, key)
) STRICT, WITHOUT ROWID;

-- kind: 1 create, 2 add, 3 update, 4 deprecate, 5 remove, 6 delete; no state (modified is NULL) after 5 and 6.
CREATE TABLE changes (
  set_id     INTEGER NOT NULL,
  position   INTEGER NOT NULL,
  time       INTEGER NOT NULL,
  kind       INTEGER NOT NULL,
  key        TEXT    NOT NULL,
  modified   INTEGER,
  length     INTEGER,
  media_type TEXT,
  encoding   TEXT,
  digests    BLOB,
  links      TEXT,
  PRIMARY KEY (set_id, position)
) STRICT, WITHOUT ROWID;

-- A page speaks for positions after < position <= last; the open one has no last.
CREATE TABLE pages (
  set_id     INTEGER NOT NULL,
  number     INTEGER NOT NULL,
  after      INTEGER NOT NULL,
  last       INTEGER,
  from_time  INTEGER NOT NULL,
  until_time INTEGER,
  PRIMARY KEY (set_id, number)
) STRICT, WITHOUT ROWID;

-- A retired shard keeps its range; what it answers is computed from the live ones in it.
CREATE TABLE shards (
  set_id    INTEGER NOT NULL,
  id        INTEGER NOT NULL,
  start_key TEXT    NOT NULL,
  end_key   TEXT,
  resources INTEGER NOT NULL,
  bytes     INTEGER NOT NULL,
  version   INTEGER NOT NULL,
  time      INTEGER NOT NULL,
  retired   INTEGER NOT NULL,
  PRIMARY KEY (set_id, id)
) STRICT, WITHOUT ROWID;
CREATE INDEX live_shards ON shards (set_id, start_key) WHERE retired = 0;

-- Writers' own names for changes, kept for seven days.
CREATE TABLE idempotency (
  set_id   INTEGER NOT NULL,
  key      TEXT    NOT NULL,
  position INTEGER NOT NULL,
  time     INTEGER NOT NULL,
  PRIMARY KEY (set_id, key)
) STRICT, WITHOUT ROWID;
CREATE INDEX idempotency_by_time ON idempotency (time);
