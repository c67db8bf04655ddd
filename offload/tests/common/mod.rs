//! What the store's tests share.
#![allow(dead_code, reason = "each test binary uses its own part")]

pub(crate) mod sim;

use std::path::Path;
use std::time::Duration;

use toastrack_offload::{Compression, Put, Store, StoreOptions, ValueKind};

/// The smallest segments there are.
pub(crate) const SEGMENT_LEN: u64 = 64 << 10;
/// Where records start in a segment, and what stands before each payload.
pub(crate) const RECORDS_START: usize = 4096;
pub(crate) const HEADER_LEN: usize = 80;

/// A store of small segments.
pub(crate) fn small(directory: &Path) -> StoreOptions {
    StoreOptions {
        directory: directory.to_owned(),
        segment_len_bytes: SEGMENT_LEN,
        dedup_entries: 1024,
        failure_pause: Duration::ZERO,
        ..StoreOptions::default()
    }
}

/// A store of small segments that writes every payload as it is.
pub(crate) fn small_raw(directory: &Path) -> StoreOptions {
    StoreOptions {
        compression: Compression::None,
        ..small(directory)
    }
}

/// Bytes without redundancy, the same for the same seed.
pub(crate) fn noise(len: usize, seed: u64) -> Vec<u8> {
    let mut state = seed.wrapping_mul(0x9E37_79B9_7F4A_7C15) | 1;
    (0..len)
        .map(|_| {
            state ^= state << 13;
            state ^= state >> 7;
            state ^= state << 17;
            (state >> 32) as u8
        })
        .collect()
}

/// Text that compresses about as JSON documents do.
pub(crate) fn document(len: usize, seed: u64) -> Vec<u8> {
    let mut out = Vec::with_capacity(len + 64);
    let mut n = seed;
    while out.len() < len {
        n = n.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
        out.extend_from_slice(
            format!("{{\"id\": {}, \"name\": \"n{}\"}}, ", n >> 40, n >> 54).as_bytes(),
        );
    }
    out.truncate(len);
    out
}

/// Puts a bytea value, waiting for room, and waits until it is durable.
pub(crate) async fn put(store: &Store, value: &[u8]) -> Put {
    loop {
        match store.put(ValueKind::Bytea, value.len() as u32, value) {
            Ok(put) => {
                store.durable(put.ticket).await.unwrap();
                return put;
            }
            Err(error) if error.kind() == toastrack_offload::Kind::Retry => {
                store.room().await.unwrap();
            }
            Err(error) => panic!("put: {error}"),
        }
    }
}

pub(crate) fn segment_path(directory: &Path, segment: u32) -> std::path::PathBuf {
    directory.join(format!("segments/{segment:08x}.seg"))
}
