//! Benchmarks against limits and peers.
fn main() {}
