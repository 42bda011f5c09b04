-- What resources are, which of them are deprecated, and what writers add to changes. The latest change of each resource
-- by position, without reading what it superseded.

-- Where the history of a set begins: 0 with a base, 1 in its log.
ALTER TABLE sets ADD COLUMN begins INTEGER NOT NULL DEFAULT 0;

-- JSON: [[type, …], label or null]. A change that removes a resource has what the resource was.
ALTER TABLE resources ADD COLUMN description TEXT;
ALTER TABLE changes ADD COLUMN description TEXT;
-- JSON: [URI to use instead, …]; NULL when the resource is not deprecated.
ALTER TABLE resources ADD COLUMN deprecated TEXT;
-- JSON: [summary or null, [URI to use instead, …]].
ALTER TABLE changes ADD COLUMN note TEXT;

-- Resources that left their set, and where. What returns loses its row.
CREATE TABLE tombstones (
  set_id   INTEGER NOT NULL,
  key      TEXT    NOT NULL,
  position INTEGER NOT NULL,
  PRIMARY KEY (set_id, key)
) STRICT, WITHOUT ROWID;
INSERT INTO tombstones (set_id, key, position)
  SELECT set_id, key, max(position) FROM changes WHERE kind IN (5, 6) AND NOT EXISTS
    (SELECT 1 FROM resources WHERE resources.set_id = changes.set_id AND resources.key = changes.key)
  GROUP BY set_id, key;
CREATE INDEX latest_removals ON tombstones (set_id, position);
-- Resources of a base have position 0 and no change.
CREATE INDEX latest_changes ON resources (set_id, position) WHERE position > 0;
