-- Descriptions have labels in several languages: `[[type, …], labels]`, where the labels are null, the text
-- of the only label if it is without a language, or `[[language, text], …]`. Earlier programs cannot read
-- the last form, and refuse a store with this version.
SELECT 1;
