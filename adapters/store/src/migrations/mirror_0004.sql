-- What a resource's list says about where it comes from originally, as a link in JSON.
ALTER TABLE pending ADD COLUMN via TEXT;
