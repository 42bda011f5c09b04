-- The note of a lease's holder for other nodes, and their requests to the holder. A note counts if
-- `note_by` is the owner, and requests count if `request_to` is: older programs take a lease without
-- these columns.
ALTER TABLE abreast.leases
  ADD COLUMN note       TEXT,
  ADD COLUMN note_by    BIGINT,
  ADD COLUMN requests   TEXT[] NOT NULL DEFAULT '{}',
  ADD COLUMN request_to BIGINT;
