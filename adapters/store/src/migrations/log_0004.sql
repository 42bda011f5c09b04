-- A checksum of what a row says, so that a flipped bit is noticed when the row is read. None in rows of older schemas.
ALTER TABLE resources ADD COLUMN sum INTEGER;
ALTER TABLE changes ADD COLUMN sum INTEGER;
ALTER TABLE versions ADD COLUMN sum INTEGER;

-- When the log was begun anew, because it went back or parts of it were lost: lists speak from here.
ALTER TABLE sets ADD COLUMN anew INTEGER;
