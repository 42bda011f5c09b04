-- Where the log stood when versions were kept again; NULL while none are, and where they were kept all the time.
ALTER TABLE sets ADD COLUMN kept_since INTEGER;
