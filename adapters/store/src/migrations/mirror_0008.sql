-- The entity that a description is of, where that is not the resource with this URI.
ALTER TABLE description ADD COLUMN entity TEXT;
CREATE INDEX description_entity ON description (entity) WHERE entity IS NOT NULL;
