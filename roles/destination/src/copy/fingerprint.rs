//! Fingerprints of URIs and documents, as states and names of files have them.

/// Makes the fingerprints that are kept in states and in names of files: versions of this program and of its compiler agree on
/// them.
pub(crate) type Fingerprint = siphasher::sip::SipHasher13;
