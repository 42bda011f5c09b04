-- Where the bytes of a planned resource are, in the file of planned bytes beside the database.
ALTER TABLE pending ADD COLUMN body INTEGER;
-- 1: the answer describes the resource; what it states is kept, and one that states nothing is a deletion.
ALTER TABLE access ADD COLUMN describes INTEGER NOT NULL DEFAULT 0;
