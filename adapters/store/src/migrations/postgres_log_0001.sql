-- The change log of several nodes. Every key starts with the set, so that a database that
-- distributes its tables can distribute them by set. No sequence numbers a position: a set's row has
-- its head, and is locked by the transaction that records. Times are in microseconds since 1970.

CREATE TABLE abreast.sets (
  id             BIGINT           GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
  slug           TEXT COLLATE "C" NOT NULL UNIQUE,
  created        BIGINT           NOT NULL,
  restarted      BIGINT,                     -- when the log was restarted after a restore
  importing      BOOLEAN          NOT NULL,
  in_log         BOOLEAN          NOT NULL,  -- whether the history starts in the log
  page_changes   BIGINT           NOT NULL,
  page_age       BIGINT           NOT NULL,
  position       BIGINT           NOT NULL,  -- of the last change
  time           BIGINT           NOT NULL,  -- of the last change, or creation
  resources      BIGINT           NOT NULL,
  page           BIGINT           NOT NULL,  -- the open page
  page_after     BIGINT           NOT NULL,
  page_from      BIGINT           NOT NULL,
  page_first     BIGINT,                     -- time of the first change in the open page
  next_shard     BIGINT           NOT NULL,
  highest        TEXT COLLATE "C",           -- an upper bound of the keys in the last shard
  revision       BIGINT           NOT NULL,  -- grows with each transaction
  versions       BOOLEAN          NOT NULL DEFAULT false,
  versions_begun BIGINT,
  versions_since BIGINT,
  kept_bytes     BIGINT           NOT NULL DEFAULT 0,
  counted_as     BIGINT,
  counted        BIGINT           NOT NULL DEFAULT 0,
  aged           BIGINT           NOT NULL DEFAULT 0,
  sized          BIGINT           NOT NULL DEFAULT 0
) WITH (fillfactor = 50);

-- The last batch of each writer in a set, by which a writer whose connection was lost during a
-- commit finds out whether the batch was recorded.
CREATE TABLE abreast.writers (
  set_id BIGINT           NOT NULL,
  writer TEXT COLLATE "C" NOT NULL,
  batch  BIGINT           NOT NULL,
  time   BIGINT           NOT NULL,
  PRIMARY KEY (set_id, writer)
) WITH (fillfactor = 50);

-- A key can be longer than an entry of an index. Rows are found by the first 16 bytes of the key's
-- SHA-256, and read in order by an index of the first 500 characters.
CREATE TABLE abreast.resources (
  set_id      BIGINT           NOT NULL,
  key_hash    BYTEA            NOT NULL,
  key         TEXT COLLATE "C" NOT NULL,
  position    BIGINT           NOT NULL,  -- of its last change; 0 in the base
  modified    BIGINT           NOT NULL,
  length      BIGINT,
  media_type  TEXT,
  encoding    TEXT,
  digests     BYTEA            NOT NULL,
  links       TEXT,
  witness     BYTEA            NOT NULL,
  content     BYTEA,
  description TEXT,
  deprecated  TEXT,
  PRIMARY KEY (set_id, key_hash)
);
CREATE INDEX resources_in_order ON abreast.resources (set_id, left(key, 500));
CREATE INDEX latest_changes ON abreast.resources (set_id, position) WHERE position > 0;

CREATE TABLE abreast.changes (
  set_id      BIGINT           NOT NULL,
  position    BIGINT           NOT NULL,
  time        BIGINT           NOT NULL,
  kind        BIGINT           NOT NULL,  -- 1 create, 2 add, 3 update, 4 deprecate, 5 remove, 6 delete
  key         TEXT COLLATE "C" NOT NULL,
  modified    BIGINT,
  length      BIGINT,
  media_type  TEXT,
  encoding    TEXT,
  digests     BYTEA,
  links       TEXT,
  content     BYTEA,
  description TEXT,
  note        TEXT,
  PRIMARY KEY (set_id, position)
);

CREATE TABLE abreast.tombstones (
  set_id   BIGINT NOT NULL,
  key_hash BYTEA  NOT NULL,
  position BIGINT NOT NULL,
  PRIMARY KEY (set_id, key_hash)
);
CREATE INDEX latest_removals ON abreast.tombstones (set_id, position);

CREATE TABLE abreast.pages (
  set_id     BIGINT NOT NULL,
  number     BIGINT NOT NULL,
  after      BIGINT NOT NULL,
  last       BIGINT,
  from_time  BIGINT NOT NULL,
  until_time BIGINT,
  PRIMARY KEY (set_id, number)
);
CREATE INDEX pages_by_time ON abreast.pages (set_id, from_time);

CREATE TABLE abreast.shards (
  set_id    BIGINT           NOT NULL,
  id        BIGINT           NOT NULL,
  start_key TEXT COLLATE "C" NOT NULL,
  end_key   TEXT COLLATE "C",
  resources BIGINT           NOT NULL,
  bytes     BIGINT           NOT NULL,
  version   BIGINT           NOT NULL,
  time      BIGINT           NOT NULL,
  retired   BOOLEAN          NOT NULL,
  revision  BIGINT           NOT NULL,  -- of the set when the row was written
  PRIMARY KEY (set_id, id)
);
CREATE INDEX live_shards ON abreast.shards (set_id, id) WHERE NOT retired;
CREATE INDEX written_shards ON abreast.shards (set_id, revision);

CREATE TABLE abreast.idempotency (
  set_id   BIGINT           NOT NULL,
  key      TEXT COLLATE "C" NOT NULL,
  position BIGINT           NOT NULL,
  time     BIGINT           NOT NULL,
  PRIMARY KEY (set_id, key)
);
CREATE INDEX idempotency_by_time ON abreast.idempotency (set_id, time);

CREATE TABLE abreast.versions (
  set_id     BIGINT NOT NULL,
  key_hash   BYTEA  NOT NULL,
  time       BIGINT NOT NULL,
  position   BIGINT NOT NULL,
  modified   BIGINT,
  length     BIGINT,
  media_type TEXT,
  encoding   TEXT,
  digests    BYTEA,
  content    BYTEA,
  PRIMARY KEY (set_id, key_hash, time)
);

-- How many rows of a set need the bytes with this digest.
CREATE TABLE abreast.contents (
  set_id BIGINT NOT NULL,
  id     BYTEA  NOT NULL,
  length BIGINT NOT NULL,
  needed BIGINT NOT NULL,
  PRIMARY KEY (set_id, id)
);
CREATE INDEX contents_by_id ON abreast.contents (id);
CREATE INDEX unneeded_contents ON abreast.contents (id) WHERE needed = 0;
