-- Topics, what was said in them, and who is to be told.
-- Instants are microseconds since 1970, UTC. Offsets of a topic are 1, 2, 3 … without gaps.

-- Notifications up to `trimmed` are gone; `bytes` counts those of the bodies that are kept. `sum` covers number and URL.
CREATE TABLE topics (
  id      INTEGER PRIMARY KEY AUTOINCREMENT,
  url     TEXT    NOT NULL UNIQUE,
  created INTEGER NOT NULL,
  head    INTEGER NOT NULL,
  trimmed INTEGER NOT NULL,
  bytes   INTEGER NOT NULL,
  sum     INTEGER NOT NULL
) STRICT;

-- Either a range of a set's changes, after < position <= last, or a body. `sum` covers the body too.
CREATE TABLE notifications (
  topic_id   INTEGER NOT NULL,
  offset     INTEGER NOT NULL,
  time       INTEGER NOT NULL,
  media_type TEXT    NOT NULL,
  links      TEXT    NOT NULL,
  after      INTEGER,
  last       INTEGER,
  body_id    INTEGER,
  sum        INTEGER NOT NULL,
  PRIMARY KEY (topic_id, offset)
) STRICT, WITHOUT ROWID;

-- Apart, so that bodies are only ever added at the end, and rows beside them stay small.
CREATE TABLE bodies (
  id    INTEGER PRIMARY KEY,
  bytes BLOB    NOT NULL
) STRICT;

-- kind: 1 subscription, 2 hub that takes the notification itself, 3 hub that takes the topic's URL.
CREATE TABLE targets (
  id          INTEGER PRIMARY KEY AUTOINCREMENT,
  topic_id    INTEGER NOT NULL,
  kind        INTEGER NOT NULL,
  address     TEXT    NOT NULL,
  secret      BLOB,
  lease_until INTEGER,
  created     INTEGER NOT NULL,
  sum         INTEGER NOT NULL
) STRICT;
CREATE UNIQUE INDEX targets_by_address ON targets (topic_id, address, kind);
CREATE INDEX targets_by_lease ON targets (lease_until) WHERE lease_until IS NOT NULL;

-- What changes with each delivery, apart: many of these rows fit on one page. `sent_*` is the last success.
CREATE TABLE progress (
  target_id    INTEGER PRIMARY KEY,
  generation   INTEGER NOT NULL,
  cursor       INTEGER NOT NULL,
  attempts     INTEGER NOT NULL,
  first_failed INTEGER,
  next_at      INTEGER,
  sum          INTEGER NOT NULL,
  sent_offset  INTEGER,
  sent_number  INTEGER,
  sent_time    INTEGER,
  sent_status  INTEGER,
  sent_micros  INTEGER
) STRICT;

-- The last failures of a target.
CREATE TABLE attempts (
  target_id INTEGER NOT NULL,
  seq       INTEGER NOT NULL,
  offset    INTEGER NOT NULL,
  number    INTEGER NOT NULL,
  time      INTEGER NOT NULL,
  status    INTEGER,
  error     TEXT,
  micros    INTEGER NOT NULL,
  PRIMARY KEY (target_id, seq)
) STRICT, WITHOUT ROWID;

-- What was given up: notifications first to last, `letters` of them.
CREATE TABLE dead (
  id        INTEGER PRIMARY KEY AUTOINCREMENT,
  target_id INTEGER NOT NULL,
  first     INTEGER NOT NULL,
  last      INTEGER NOT NULL,
  letters   INTEGER NOT NULL,
  error     TEXT    NOT NULL,
  time      INTEGER NOT NULL
) STRICT;
CREATE INDEX dead_by_target ON dead (target_id, first);

-- Questions to be put to subscribers. mode: 1 subscribe, 2 unsubscribe, 3 denied. `sum` covers what was asked for.
CREATE TABLE verifications (
  id            INTEGER PRIMARY KEY AUTOINCREMENT,
  topic_url     TEXT    NOT NULL,
  callback      TEXT    NOT NULL,
  mode          INTEGER NOT NULL,
  secret        BLOB,
  lease_seconds INTEGER,
  challenge     TEXT    NOT NULL,
  reason        TEXT,
  attempts      INTEGER NOT NULL,
  next_at       INTEGER NOT NULL,
  created       INTEGER NOT NULL,
  sum           INTEGER NOT NULL
) STRICT;
CREATE INDEX verifications_by_time ON verifications (next_at, id);

-- Targets that are no more. why: 1 unsubscribed, 2 lease over, 3 gone (410), 4 denied, 5 by hand.
CREATE TABLE ended (
  id         INTEGER PRIMARY KEY AUTOINCREMENT,
  target_id  INTEGER NOT NULL,
  topic_id   INTEGER NOT NULL,
  kind       INTEGER NOT NULL,
  address    TEXT    NOT NULL,
  why        INTEGER NOT NULL,
  cursor     INTEGER NOT NULL,
  created    INTEGER NOT NULL,
  time       INTEGER NOT NULL
) STRICT;
