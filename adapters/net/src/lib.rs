//! HTTP client with limits.
