//! From a value to a record in the batch that is being filled.

use std::sync::atomic::Ordering;

use sha2::{Digest, Sha256};

use super::tickets::Fate;
use super::{Put, Shared, segments};
use crate::MAX_VALUE_LEN;
use crate::error::{Kind, StoreError};
use crate::format::record::{self, HEADER_LEN};
use crate::format::segment::RECORDS_START;
use crate::hint::Entry;
use crate::key::Identity;
use crate::kind::{Codec, ValueKind};
use crate::reference::{Address, Reference};
use crate::stats::add;

impl Shared {
    pub(super) fn put(
        &self,
        kind: ValueKind,
        char_len: u32,
        value: &[u8],
    ) -> Result<Put, StoreError> {
        let logical_len = checked_len(char_len, value)?;
        let identity = self.key.identity(value);
        let put = match self.stored_already(kind, identity, logical_len, char_len) {
            Some(put) => {
                add(&self.counters.dedup_hits, 1);
                add(&self.counters.dedup_bytes, u64::from(logical_len));
                put
            }
            None => self
                .append(kind, identity, char_len, value)
                .inspect_err(|_| add(&self.counters.puts_refused, 1))?,
        };
        add(&self.counters.values_put, 1);
        add(&self.counters.logical_bytes, u64::from(logical_len));
        Ok(put)
    }

    fn append(
        &self,
        kind: ValueKind,
        identity: Identity,
        char_len: u32,
        value: &[u8],
    ) -> Result<Put, StoreError> {
        let compressed = self.options.compression.compress(value);
        let (codec, payload) = match &compressed {
            Some(compressed) => (Codec::Lz4, compressed.as_slice()),
            None => (Codec::Raw, value),
        };
        let digest: Option<[u8; 32]> = (self.options.server_digest && codec == Codec::Raw)
            .then(|| Sha256::digest(payload).into());
        let footprint = record::footprint(payload.len());
        let longest =
            segments::records_end(self.options.segment_len_bytes) - u64::from(RECORDS_START);
        if footprint as u64 > longest {
            return Err(StoreError::new(
                Kind::BadRequest,
                format_args!("a record of {footprint} bytes does not fit a segment"),
            ));
        }
        // The lengths are at most MAX_VALUE_LEN, which `checked_len` has seen to.
        let mut address = Address {
            kind,
            codec,
            segment: 0,
            offset: 0,
            stored_len: payload.len() as u32,
            logical_len: value.len() as u32,
            char_len,
            identity,
        };
        let place = self.pipeline.append(footprint, |out, place| {
            address.segment = place.segment;
            address.offset = place.offset;
            record::write(out, &self.store_id, &address, digest.as_ref(), payload);
        })?;
        let entry = Entry {
            reference: Reference::seal(&self.key, address),
            ticket: place.ticket,
        };
        self.hint.lock().insert(entry);
        add(&self.counters.stored_bytes, payload.len() as u64);
        if codec == Codec::Lz4 {
            let counters = &self.counters;
            add(&counters.values_compressed, 1);
            add(&counters.compression_in_bytes, value.len() as u64);
            add(&counters.compression_out_bytes, payload.len() as u64);
        }
        Ok(Put {
            reference: entry.reference,
            ticket: place.ticket,
            deduplicated: false,
        })
    }

    /// A record of the same value that may be shared.
    fn stored_already(
        &self,
        kind: ValueKind,
        identity: Identity,
        logical_len: u32,
        char_len: u32,
    ) -> Option<Put> {
        let entry = self
            .hint
            .lock()
            .find(kind, identity, logical_len, char_len)?;
        let shareable = match self.pipeline.fate(entry.ticket) {
            Fate::Pending => true,
            Fate::Failed(_) => false,
            Fate::Durable => self.header_may_be_right(entry.reference.address()),
        };
        if !shareable {
            self.hint.lock().forget(entry.reference.address());
            return None;
        }
        Some(Put {
            reference: entry.reference,
            ticket: entry.ticket,
            deduplicated: true,
        })
    }

    /// `false` when the record's header is in memory and is not what it should be. Never waits for
    /// the disk.
    fn header_may_be_right(&self, address: &Address) -> bool {
        let Ok(file) = self.readers.file(&*self.disk, address) else {
            return false;
        };
        let mut header = [0u8; HEADER_LEN];
        match file.read_at_now(&mut header, u64::from(address.offset)) {
            Ok(Some(HEADER_LEN)) => record::check_header(&header, address).is_ok(),
            Ok(None) => true,
            Ok(Some(_)) | Err(_) => false,
        }
    }

    /// A number for a new segment.
    pub(super) fn take_segment_number(&self) -> Result<u32, StoreError> {
        self.next_segment
            .fetch_update(Ordering::Relaxed, Ordering::Relaxed, |n| n.checked_add(1))
            .map_err(|_| StoreError::new(Kind::ReadOnly, "segment numbers are used up"))
    }
}

fn checked_len(char_len: u32, value: &[u8]) -> Result<u32, StoreError> {
    let len = u32::try_from(value.len())
        .ok()
        .filter(|len| *len as usize <= MAX_VALUE_LEN)
        .ok_or_else(|| {
            StoreError::new(
                Kind::BadRequest,
                format_args!("value of {} bytes is too long for one record", value.len()),
            )
        })?;
    if char_len > len {
        return Err(StoreError::new(
            Kind::BadRequest,
            format_args!("value of {len} bytes cannot have {char_len} characters"),
        ));
    }
    Ok(len)
}
