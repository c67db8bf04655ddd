//! Compression where it pays.
//!
//! Promises: the compressed form is kept only if it saves at least the set share; values without
//!           redundancy are told by sampling, at a fraction of the cost of hashing them.

use std::cell::RefCell;

use lz4_flex::block::{CompressTable, compress_into_with_table, get_maximum_output_size};

use crate::MAX_RECORD_LEN;

/// How payloads are compressed.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Compression {
    /// Everything is stored as it is.
    None,
    /// lz4 block format.
    Lz4 {
        /// The share of the bytes, 0 to 1, that must be saved for the compressed form to be kept.
        min_saving: f32,
    },
}

impl Default for Compression {
    fn default() -> Compression {
        Compression::Lz4 { min_saving: 0.125 }
    }
}

impl Compression {
    /// The compressed form of `value`, if it is worth keeping.
    pub(crate) fn compress(self, value: &[u8]) -> Option<Compressed> {
        let Compression::Lz4 { min_saving } = self else {
            return None;
        };
        if value.len() < MIN_LEN || value.len() > MAX_RECORD_LEN || !looks_compressible(value) {
            return None;
        }
        let compressed = Compressed::of(value)?;
        let most = (f64::from(1.0 - min_saving) * value.len() as f64) as usize;
        (compressed.len <= most && compressed.len < value.len()).then_some(compressed)
    }
}

/// The compressed form of a value, in a buffer that goes back to its thread when this is dropped.
pub(crate) struct Compressed {
    /// Longer than what was written to it, and never cleared: zeroing it cost as much as lz4.
    buffer: Vec<u8>,
    len: usize,
}

impl Compressed {
    pub(crate) fn as_slice(&self) -> &[u8] {
        &self.buffer[..self.len]
    }

    fn of(value: &[u8]) -> Option<Compressed> {
        SCRATCH.with_borrow_mut(|scratch| {
            let mut buffer = std::mem::take(&mut scratch.buffer);
            let most = get_maximum_output_size(value.len());
            if buffer.len() < most {
                buffer.resize(most, 0);
            }
            let table = if value.len() < usize::from(u16::MAX) {
                &mut scratch.small
            } else {
                scratch.large.get_or_insert_with(CompressTable::large)
            };
            let len = compress_into_with_table(value, &mut buffer, table).ok()?;
            Some(Compressed { buffer, len })
        })
    }
}

impl Drop for Compressed {
    fn drop(&mut self) {
        let buffer = std::mem::take(&mut self.buffer);
        // A thread that is ending has no use for it.
        let _ = SCRATCH.try_with(|scratch| {
            if let Ok(mut scratch) = scratch.try_borrow_mut() {
                scratch.buffer = buffer;
            }
        });
    }
}

/// What lz4 works with, kept by each thread that puts: at most as much as the longest value needs,
/// 1.2 MiB.
struct Scratch {
    buffer: Vec<u8>,
    /// For values below 64 KiB; lz4 would turn it into a large one for good.
    small: CompressTable,
    large: Option<CompressTable>,
}

thread_local! {
    static SCRATCH: RefCell<Scratch> = RefCell::new(Scratch {
        buffer: Vec::new(),
        small: CompressTable::small(),
        large: None,
    });
}

/// Undoes lz4. `None` when the payload does not decompress to exactly `logical_len` bytes.
pub(crate) fn decompress(payload: &[u8], logical_len: usize) -> Option<Vec<u8>> {
    if logical_len > MAX_RECORD_LEN {
        return None;
    }
    let mut value = vec![0u8; logical_len];
    let written = lz4_flex::block::decompress_into(payload, &mut value).ok()?;
    (written == logical_len).then_some(value)
}

/// Below this lz4 has nothing to work with, and the header outweighs what it could save.
const MIN_LEN: usize = 64;
/// Below this lz4 itself costs no more than looking first.
const MIN_SAMPLED_LEN: usize = 2048;

/// `false` only for values that look like noise and in which no repeat was found. Text, even text
/// without repeats, counts as compressible: lz4 decides.
fn looks_compressible(value: &[u8]) -> bool {
    value.len() < MIN_SAMPLED_LEN || !looks_like_noise(value) || has_repeat(value)
}

/// Whether the bytes are spread over all values about evenly: already compressed or encrypted data.
fn looks_like_noise(value: &[u8]) -> bool {
    const SAMPLES: usize = 512;
    let mut counts = [0u16; 256];
    let step = value.len() / SAMPLES;
    for byte in value.iter().step_by(step).take(SAMPLES) {
        counts[usize::from(*byte)] += 1;
    }
    // The sum of squares of 512 draws from 256 values has mean 1534 and deviation 32 when all are
    // equally likely. Text of 64 symbols has 4600, and what lies between can go to lz4.
    let squares: u32 = counts
        .iter()
        .map(|count| u32::from(*count) * u32::from(*count))
        .sum();
    squares < 1750
}

/// Looks for a stretch that occurred before, such as noise stored twice: records where every
/// `stride`-th 8-byte group is, then looks at every position of a few windows of that length, so
/// that a repeat that covers a window and one stride is found at whatever distance it is.
fn has_repeat(value: &[u8]) -> bool {
    const SLOTS: usize = 512;
    const WINDOWS: usize = 8;
    let stride = (value.len() / (SLOTS / 2)).max(32);
    let mut seen = [u32::MAX; SLOTS];
    for at in (0..value.len() - 8).step_by(stride) {
        seen[slot::<SLOTS>(group(value, at))] = at as u32;
    }
    for window in 0..WINDOWS {
        let start = (2 * window + 1) * value.len() / (2 * WINDOWS);
        let end = (start + stride).min(value.len() - 8);
        for at in start..end {
            let group_here = group(value, at);
            let before = seen[slot::<SLOTS>(group_here)] as usize;
            if before != at && before < value.len() && group(value, before) == group_here {
                return true;
            }
        }
    }
    false
}

fn group(value: &[u8], at: usize) -> u64 {
    crate::format::bytes::u64_at(value, at)
}

fn slot<const SLOTS: usize>(group: u64) -> usize {
    (group.wrapping_mul(0x9E37_79B9_7F4A_7C15) >> 32) as usize % SLOTS
}

#[cfg(test)]
mod tests {
    use super::*;

    fn noise(len: usize, seed: u64) -> Vec<u8> {
        let mut state = seed | 1;
        (0..len)
            .map(|_| {
                state ^= state << 13;
                state ^= state >> 7;
                state ^= state << 17;
                (state >> 32) as u8
            })
            .collect()
    }

    /// Proves: noise is not handed to lz4, at any size; noise stored twice is.
    #[test]
    fn noise_is_told_from_repeated_noise() {
        for len in [2048, 4000, 8192, 65_536, MAX_RECORD_LEN] {
            let mut skipped = 0;
            let mut found = 0;
            for seed in 1..=50 {
                let once = noise(len, seed * 7919);
                skipped += usize::from(!looks_compressible(&once));
                let mut twice = once[..len / 2].to_vec();
                twice.extend_from_slice(&once[..len / 2]);
                found += usize::from(looks_compressible(&twice));
            }
            assert!(skipped >= 48, "{len}: {skipped} of 50 skipped");
            assert!(found >= 48, "{len}: {found} of 50 found");
        }
    }

    /// Proves: the compressed form is kept from the set saving on, and only then.
    #[test]
    fn the_saving_decides() {
        // Noise and a run of one byte whose length is the saving, but for lz4's few bytes.
        let with_run = |run: usize| {
            let mut value: Vec<u8> = noise(8000 - run, 5).iter().map(|b| b & 0x7F).collect();
            value.resize(8000, b'x');
            value
        };
        let lz4 = Compression::Lz4 { min_saving: 0.125 };
        assert!(lz4.compress(&with_run(900)).is_none());
        let kept = lz4.compress(&with_run(1200)).unwrap();
        assert!(kept.as_slice().len() <= 7000);
        assert_eq!(decompress(kept.as_slice(), 8000).unwrap(), with_run(1200));
        assert!(Compression::None.compress(&with_run(4000)).is_none());
    }

    /// Proves: a buffer and a table that were used before leave no trace, whatever the lengths; two
    /// compressed values at a time do not share one.
    #[test]
    fn used_buffers_leave_no_trace() {
        let lz4 = Compression::Lz4 { min_saving: 0.125 };
        let value = |len: usize, word: &str| word.repeat(len / word.len()).into_bytes();
        for len in [100_000, 300, MAX_RECORD_LEN, 70_000, 65_535, 65_534, 5000] {
            for word in ["abcdef", "some other words "] {
                let value = value(len, word);
                let kept = lz4.compress(&value).unwrap();
                let second = lz4.compress(&value[..len / 2]).unwrap();
                assert_eq!(kept.as_slice(), lz4_flex::block::compress(&value));
                assert_eq!(decompress(kept.as_slice(), value.len()).unwrap(), value);
                assert_eq!(
                    decompress(second.as_slice(), len / 2).unwrap(),
                    value[..len / 2]
                );
            }
        }
    }

    /// Proves: a payload that does not decompress to exactly the length is refused, without panic
    /// and without an allocation of a claimed size.
    #[test]
    fn wrong_lengths_are_refused() {
        let value = vec![b'a'; 5000];
        let payload = lz4_flex::block::compress(&value);
        assert!(decompress(&payload, 4999).is_none());
        assert!(decompress(&payload, 5001).is_none());
        assert!(decompress(&payload, usize::MAX).is_none());
        assert!(decompress(&payload[..payload.len() - 1], 5000).is_none());
        assert!(decompress(&[], 1).is_none());
        for seed in 1..500 {
            let _ = decompress(&noise(64, seed), 5000);
        }
    }
}
