-- Where a copy of a state's bytes is kept: BLAKE3, 32 bytes.

ALTER TABLE resources ADD COLUMN content BLOB;
ALTER TABLE changes ADD COLUMN content BLOB;
