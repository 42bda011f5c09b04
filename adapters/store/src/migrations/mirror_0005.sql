-- How a resource, planned or kept, is requested, where that is not by its URI alone.
CREATE TABLE access (
    uri TEXT PRIMARY KEY,
    href TEXT,                      -- the address to request, where it is not the URI
    accept TEXT                     -- the media types to ask for, as in an `Accept` header
) STRICT, WITHOUT ROWID;
