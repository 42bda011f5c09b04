//! Destination: discovers, copies and keeps up.
