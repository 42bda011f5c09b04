//! Cases that show what each specification asks for. They are data: a folder for each specification with its
//! `manifest.toml` and the documents it names; `tests/` runs them.
