-- The topics, targets and verifications of a hub of several nodes. The row of `hub` is locked by each
-- transaction that changes them, but for progress and notifications of failures; its revision grows
-- with each of these transactions, and is the order in which other nodes read their rows. Times are in
-- microseconds since 1970. Targets and verifications start with their shard, the others with their
-- topic.

CREATE TABLE abreast.hub (
  id                SMALLINT PRIMARY KEY CHECK (id = 0),
  revision          BIGINT   NOT NULL,
  topics            BIGINT   NOT NULL,
  targets           BIGINT   NOT NULL,
  verifications     BIGINT   NOT NULL,
  last_topic        BIGINT   NOT NULL,  -- numbers that were given out, in random steps: a number that a
  last_target       BIGINT   NOT NULL,  -- failover lost is then not given to another one
  last_verification BIGINT   NOT NULL,
  last_ended        BIGINT   NOT NULL,
  stamp             BIGINT   NOT NULL   -- random, of this revision
) WITH (fillfactor = 50);
INSERT INTO abreast.hub VALUES (0, 0, 0, 0, 0, 1000, 0, 0, 0, floor(random() * 9e18));

-- The stamps of the last revisions. A node that knows another stamp of a revision knows changes that the
-- database lost in a failover or restore, also if there are later revisions.
CREATE TABLE abreast.revisions (
  revision BIGINT PRIMARY KEY,
  stamp    BIGINT NOT NULL
);
INSERT INTO abreast.revisions SELECT revision, stamp FROM abreast.hub;

-- Nodes with a valid lease. A row is locked while the node records progress, and deleted by another
-- node when the lease is over.
CREATE TABLE abreast.nodes (
  id      BIGINT           PRIMARY KEY,  -- random, so that a restored database gives none out again
  name    TEXT COLLATE "C" NOT NULL,
  started BIGINT           NOT NULL,
  until   BIGINT           NOT NULL
) WITH (fillfactor = 50);

-- A shard without a row of its owner in `nodes` is free.
CREATE TABLE abreast.hub_shards (
  shard SMALLINT PRIMARY KEY,
  owner BIGINT
) WITH (fillfactor = 50);
CREATE INDEX hub_shards_by_owner ON abreast.hub_shards (owner);
INSERT INTO abreast.hub_shards (shard) SELECT generate_series(0, 1023);

-- A URL can be longer than an entry of an index: rows are found by the first 16 bytes of its SHA-256.
CREATE TABLE abreast.topics (
  id       BIGINT           PRIMARY KEY,
  url_hash BYTEA            NOT NULL UNIQUE,
  url      TEXT COLLATE "C" NOT NULL,
  created  BIGINT           NOT NULL,
  head     BIGINT           NOT NULL,
  trimmed  BIGINT           NOT NULL,
  bytes    BIGINT           NOT NULL,  -- in the stored bodies
  time     BIGINT           NOT NULL,  -- of the last notification, or creation
  revision BIGINT           NOT NULL
) WITH (fillfactor = 70);
CREATE INDEX changed_topics ON abreast.topics (revision);

-- Either a range of a set's changes, after < position <= last, or a body.
CREATE TABLE abreast.notifications (
  topic_id   BIGINT NOT NULL,
  number     BIGINT NOT NULL,  -- offset in the topic
  time       BIGINT NOT NULL,
  media_type TEXT   NOT NULL,
  links      TEXT   NOT NULL,
  after      BIGINT,
  last       BIGINT,
  body       BYTEA,
  PRIMARY KEY (topic_id, number)
);
CREATE INDEX notifications_by_time ON abreast.notifications (topic_id, time, number);

-- kind: 1 subscription, 2 hub that takes the notification itself, 3 hub that takes the topic's URL,
-- 4 node of an XMPP service, 5 webhook.
CREATE TABLE abreast.targets (
  shard        SMALLINT         NOT NULL,
  id           BIGINT           NOT NULL,
  topic_id     BIGINT           NOT NULL,
  kind         SMALLINT         NOT NULL,
  address_hash BYTEA            NOT NULL,
  address      TEXT COLLATE "C" NOT NULL,
  secret       BYTEA,
  lease_until  BIGINT,
  created      BIGINT           NOT NULL,
  revision     BIGINT           NOT NULL,  -- of the creation, or the last renewal or replay
  replayed     BIGINT           NOT NULL,  -- revision of the last replay
  PRIMARY KEY (shard, id),
  UNIQUE (shard, address_hash, topic_id, kind)
);
CREATE INDEX targets_in_order ON abreast.targets (id);
CREATE INDEX targets_by_topic ON abreast.targets (topic_id, id);
CREATE INDEX targets_by_lease ON abreast.targets (lease_until, id) WHERE lease_until IS NOT NULL;
CREATE INDEX changed_targets ON abreast.targets (revision);

-- The values that each delivery changes, in rows of their own. `sent_*` describe the last success.
CREATE TABLE abreast.progress (
  shard        SMALLINT NOT NULL,
  id           BIGINT   NOT NULL,
  generation   BIGINT   NOT NULL,
  cursor       BIGINT   NOT NULL,
  attempts     BIGINT   NOT NULL,
  first_failed BIGINT,
  next_at      BIGINT,
  failures     BIGINT   NOT NULL DEFAULT 0,  -- number of the last row in `attempts`
  letters      BIGINT   NOT NULL DEFAULT 0,  -- rows in `dead`
  last_letter  BIGINT   NOT NULL DEFAULT 0,  -- number of the last row in `dead`
  sent_offset  BIGINT,
  sent_number  BIGINT,
  sent_time    BIGINT,
  sent_status  INTEGER,
  sent_micros  BIGINT,
  PRIMARY KEY (shard, id)
) WITH (fillfactor = 60);

-- The last failures of a target.
CREATE TABLE abreast.attempts (
  shard   SMALLINT NOT NULL,
  id      BIGINT   NOT NULL,
  row     BIGINT   NOT NULL,
  cursor  BIGINT   NOT NULL,  -- offset of the notification
  number  BIGINT   NOT NULL,
  time    BIGINT   NOT NULL,
  status  INTEGER,
  error   TEXT     NOT NULL,
  micros  BIGINT   NOT NULL,
  PRIMARY KEY (shard, id, row)
);

-- Notifications first to last that were given up, `letters` of them.
CREATE TABLE abreast.dead (
  shard   SMALLINT NOT NULL,
  id      BIGINT   NOT NULL,
  row     BIGINT   NOT NULL,
  first   BIGINT   NOT NULL,
  last    BIGINT   NOT NULL,
  letters BIGINT   NOT NULL,
  error   TEXT     NOT NULL,
  time    BIGINT   NOT NULL,
  PRIMARY KEY (shard, id, row)
);
CREATE INDEX dead_in_order ON abreast.dead (shard, id, first, row);
CREATE INDEX dead_by_time ON abreast.dead (time);

-- mode: 1 subscribe, 2 unsubscribe, 3 denied.
CREATE TABLE abreast.verifications (
  shard         SMALLINT         NOT NULL,
  id            BIGINT           NOT NULL,
  topic_url     TEXT COLLATE "C" NOT NULL,
  callback      TEXT COLLATE "C" NOT NULL,
  mode          SMALLINT         NOT NULL,
  secret        BYTEA,
  lease_seconds BIGINT,
  challenge     TEXT             NOT NULL,
  reason        TEXT,
  attempts      BIGINT           NOT NULL,
  next_at       BIGINT           NOT NULL,
  created       BIGINT           NOT NULL,
  revision      BIGINT           NOT NULL,
  PRIMARY KEY (shard, id)
);
CREATE INDEX verifications_in_order ON abreast.verifications (id);
CREATE INDEX changed_verifications ON abreast.verifications (revision);

-- The last targets that ended. why: 1 unsubscribed, 2 lease over, 3 gone (410), 4 denied, 5 by hand,
-- 6 not configured.
CREATE TABLE abreast.ended (
  number   BIGINT           PRIMARY KEY,
  id       BIGINT           NOT NULL,
  topic_id BIGINT           NOT NULL,
  kind     SMALLINT         NOT NULL,
  address  TEXT COLLATE "C" NOT NULL,
  why      SMALLINT         NOT NULL,
  cursor   BIGINT           NOT NULL,
  created  BIGINT           NOT NULL,
  time     BIGINT           NOT NULL,
  revision BIGINT           NOT NULL
);
CREATE INDEX changed_ended ON abreast.ended (revision);
