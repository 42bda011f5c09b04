-- Small records of the whole store by name, such as the tokens of the API.
CREATE TABLE abreast.records (
  name     TEXT COLLATE "C" PRIMARY KEY,
  revision BIGINT           NOT NULL,
  bytes    BYTEA            NOT NULL
);
