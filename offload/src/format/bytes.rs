//! Little-endian integers at fixed offsets of fixed-size structures.

pub(crate) fn u32_at(bytes: &[u8], at: usize) -> u32 {
    u32::from_le_bytes(array_at(bytes, at))
}

pub(crate) fn u64_at(bytes: &[u8], at: usize) -> u64 {
    u64::from_le_bytes(array_at(bytes, at))
}

/// `bytes[at..at + N]`; the callers index structures whose length they have checked.
pub(crate) fn array_at<const N: usize>(bytes: &[u8], at: usize) -> [u8; N] {
    let mut out = [0u8; N];
    out.copy_from_slice(&bytes[at..at + N]);
    out
}

pub(crate) fn put(bytes: &mut [u8], at: usize, field: &[u8]) {
    bytes[at..at + field.len()].copy_from_slice(field);
}

/// Whether all bytes are zero. By block comparison, since recovery runs it over whole segments.
pub(crate) fn all_zero(bytes: &[u8]) -> bool {
    const ZEROES: [u8; 4096] = [0; 4096];
    bytes
        .chunks(ZEROES.len())
        .all(|chunk| *chunk == ZEROES[..chunk.len()])
}
