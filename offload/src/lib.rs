//! References, chunks, segments: the content-addressed, log-structured chunk store
