//! HTTP server of a Source.
