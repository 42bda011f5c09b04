-- The process whose worker, such as the watch of a folder, records in the set. Batches of earlier
-- workers are refused.
ALTER TABLE abreast.sets ADD COLUMN worker BIGINT NOT NULL DEFAULT 0;
