-- Small records of the whole store by name, such as the tokens of the API.
CREATE TABLE abreast.records (
  name     TEXT COLLATE "C" PRIMARY KEY,
  revision BIGINT           NOT NULL,
  bytes    BYTEA            NOT NULL
);

-- Leases of parts of the work of a Source, of which one node at a time does each part.
CREATE TABLE abreast.leases (
  name  TEXT COLLATE "C" PRIMARY KEY,
  owner BIGINT           NOT NULL,  -- random number of a process
  node  TEXT             NOT NULL,  -- its name
  until BIGINT           NOT NULL   -- microseconds since 1970, by the clock of the database
);
