//! ResourceSync 1.1 documents: read and write.
