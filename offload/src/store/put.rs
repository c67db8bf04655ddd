//! From a value to a record in the batch that is being filled.

use std::sync::atomic::Ordering;

use sha2::{Digest, Sha256};

use super::tickets::Fate;
use super::{Put, Shared, Ticket, segments};
use crate::error::{Kind, StoreError};
use crate::format::manifest;
use crate::format::record::{self, HEADER_LEN};
use crate::format::segment::RECORDS_START;
use crate::hint::Entry;
use crate::key::Identity;
use crate::kind::{Codec, ValueKind};
use crate::reference::{Address, Reference};
use crate::stats::add;
use crate::{MAX_RECORD_LEN, MAX_VALUE_LEN};

/// What a value is, wherever it is stored.
#[derive(Clone, Copy)]
struct Content {
    kind: ValueKind,
    identity: Identity,
    logical_len: u32,
    char_len: u32,
}

impl Shared {
    pub(super) fn put(
        &self,
        kind: ValueKind,
        char_len: u32,
        value: &[u8],
    ) -> Result<Put, StoreError> {
        let content = Content {
            kind,
            logical_len: checked_len(char_len, value)?,
            char_len,
            identity: self.key.identity(value),
        };
        let logical_len = u64::from(content.logical_len);
        let put = match self.stored_already(&content) {
            Some(put) => {
                add(&self.counters.dedup_hits, 1);
                add(&self.counters.dedup_bytes, logical_len);
                Ok(put)
            }
            None if value.len() > MAX_RECORD_LEN => self.put_in_pieces(content, value),
            None => self.append_value(content, value),
        }
        .inspect_err(|_| add(&self.counters.puts_refused, 1))?;
        add(&self.counters.values_put, 1);
        add(&self.counters.logical_bytes, logical_len);
        Ok(put)
    }

    /// The pieces are values of kind bytea of their own, shared with other values where they are
    /// equal. When one is refused, those before it stay without a manifest that names them.
    fn put_in_pieces(&self, content: Content, value: &[u8]) -> Result<Put, StoreError> {
        let mut payload = Vec::with_capacity(manifest::payload_len(value.len()));
        let mut ticket = Ticket::default();
        for piece in manifest::pieces(value) {
            let len = checked_len(0, piece)?;
            let content = Content {
                kind: ValueKind::Bytea,
                identity: self.key.identity(piece),
                logical_len: len,
                char_len: len,
            };
            let put = match self.stored_already(&content) {
                Some(put) => put,
                None => self.append_value(content, piece)?,
            };
            ticket = ticket.max(put.ticket);
            manifest::push(&mut payload, &put.reference);
        }
        let put = self.append(content, Codec::Manifest, None, &payload)?;
        Ok(Put {
            ticket: ticket.max(put.ticket),
            ..put
        })
    }

    fn append_value(&self, content: Content, value: &[u8]) -> Result<Put, StoreError> {
        let compressed = self.options.compression.compress(value);
        let (codec, payload) = match &compressed {
            Some(compressed) => (Codec::Lz4, compressed.as_slice()),
            None => (Codec::Raw, value),
        };
        let digest: Option<[u8; 32]> = (self.options.server_digest && codec == Codec::Raw)
            .then(|| Sha256::digest(payload).into());
        let put = self.append(content, codec, digest.as_ref(), payload)?;
        if codec == Codec::Lz4 {
            let counters = &self.counters;
            add(&counters.values_compressed, 1);
            add(&counters.compression_in_bytes, value.len() as u64);
            add(&counters.compression_out_bytes, payload.len() as u64);
        }
        Ok(put)
    }

    /// Appends a record.
    fn append(
        &self,
        content: Content,
        codec: Codec,
        digest: Option<&[u8; 32]>,
        payload: &[u8],
    ) -> Result<Put, StoreError> {
        let mut address = Address {
            kind: content.kind,
            codec,
            segment: 0,
            offset: 0,
            stored_len: checked_len(0, payload)?,
            logical_len: content.logical_len,
            char_len: content.char_len,
            identity: content.identity,
        };
        let footprint = record::footprint(payload.len());
        let longest =
            segments::records_end(self.options.segment_len_bytes) - u64::from(RECORDS_START);
        if footprint as u64 > longest {
            return Err(StoreError::new(
                Kind::BadRequest,
                format_args!("a record of {footprint} bytes does not fit a segment"),
            ));
        }
        let place = self.pipeline.append(footprint, |out, place| {
            address.segment = place.segment;
            address.offset = place.offset;
            record::write(out, &self.store_id, &address, digest, payload);
        })?;
        let entry = Entry {
            reference: Reference::seal(&self.key, address),
            ticket: place.ticket,
        };
        self.hint.lock().insert(entry);
        add(&self.counters.stored_bytes, payload.len() as u64);
        Ok(Put {
            reference: entry.reference,
            ticket: place.ticket,
            deduplicated: false,
        })
    }

    /// A record of the same value that may be shared.
    fn stored_already(&self, content: &Content) -> Option<Put> {
        let entry = self.hint.lock().find(
            content.kind,
            content.identity,
            content.logical_len,
            content.char_len,
        )?;
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
                format_args!("a value of {} bytes is too long", value.len()),
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
