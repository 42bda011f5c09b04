-- The roles of a node. A node of an older program has all.
ALTER TABLE abreast.nodes
  ADD COLUMN roles TEXT[] NOT NULL DEFAULT '{publish,api,hub,watch}';
