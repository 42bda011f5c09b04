//! Fingerprints of URIs and documents, for the database of the copy and for file names.

/// Hash function of stored fingerprints. The algorithm is fixed, because every version of this
/// program and of its compiler must compute the same values.
pub(crate) type Fingerprint = siphasher::sip::SipHasher13;
