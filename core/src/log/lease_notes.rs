//! Notes and requests between the node that holds a lease and the other nodes.

/// Most bytes in the note of a lease's holder.
pub const NOTE_BYTES_MAX: usize = 16 * 1024;
/// Most bytes in a request to the holder of a lease.
pub const REQUEST_BYTES_MAX: usize = 200;
/// Most requests that wait until the holder of a lease takes them.
pub const REQUESTS_MAX: usize = 16;

/// The note that the holder of a lease published for other nodes, such as the state of a watch.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HolderNote {
    /// Random number of the process that holds the lease.
    pub holder: i64,
    /// Name of the node, for people.
    pub node: String,
    /// The text of the note.
    pub text: String,
}
