//! From what a client sends to what is stored: the text or the bytes that Postgres would print.
//!
//! Promises: a value is taken out of the row only if Postgres would certainly have accepted it, and
//!           then what is stored is what Postgres would have given back (S5). In doubt it stays, and
//!           Postgres judges it (S2).

use std::borrow::Cow;

use bytes::Bytes;
use toastrack_cache::DetoastCache;
use toastrack_offload::{MAX_VALUE_LEN, Put, Store, ValueKind, begins_like_reference};
use toastrack_value::{bytea, json, text};

use crate::catalog::Column;
use crate::metrics::{InlineReason, Metrics, add};

/// A value that is sure to be valid, as it will be stored.
struct Prepared<'v> {
    value: Cow<'v, [u8]>,
    char_len: u32,
}

/// Where values go and what is counted on the way.
pub(crate) struct Sink<'s> {
    pub(crate) store: &'s Store,
    pub(crate) cache: &'s DetoastCache,
    pub(crate) metrics: &'s Metrics,
}

impl Sink<'_> {
    /// Puts a value in, if it is worth it and certainly valid. `binary` is the format it came in. With
    /// `only_lookalike` only what would otherwise be read as a reference is worth it.
    ///
    /// Durable only once the ticket in the answer is.
    pub(crate) fn offload(
        &self,
        column: &Column,
        value: &[u8],
        binary: bool,
        only_lookalike: bool,
    ) -> Option<Put> {
        if !is_candidate(column, value, binary) {
            return None;
        }
        match self.try_offload(column, value, binary, only_lookalike) {
            Ok(put) => put,
            Err(reason) => {
                self.metrics.count_inline(reason);
                add(&column.counters.left_inline, 1);
                None
            }
        }
    }

    fn try_offload(
        &self,
        column: &Column,
        value: &[u8],
        binary: bool,
        only_lookalike: bool,
    ) -> Result<Option<Put>, InlineReason> {
        let prepared = prepare(column, value, binary)?;
        let stored = prepared.value.as_ref();
        let large = stored.len() > column.threshold as usize && !only_lookalike;
        if !large && !begins_like_reference(column.kind, stored) {
            return Ok(None);
        }
        if stored.len() > MAX_VALUE_LEN {
            return Err(InlineReason::TooLarge);
        }
        let put = self
            .store
            .put(column.kind, prepared.char_len, stored)
            .map_err(|error| {
                tracing::warn!(%error, "value stays inline");
                InlineReason::Store
            })?;
        add(&column.counters.values_offloaded, 1);
        add(&column.counters.bytes_offloaded, stored.len() as u64);
        let key = put.reference.identity().0;
        if !(put.deduplicated && self.cache.contains(&key)) {
            self.cache.insert(key, Bytes::copy_from_slice(stored));
        }
        Ok(Some(put))
    }
}

/// The cheap test before any work: longer than the threshold, or to be kept from being read as
/// something else.
fn is_candidate(column: &Column, value: &[u8], binary: bool) -> bool {
    let threshold = column.threshold as usize;
    match (column.kind, binary) {
        (ValueKind::Bytea, false) => {
            // Two characters a byte in hex form, one to four in escape form.
            value.len() / 4 > threshold
                || value.len().saturating_sub(2) / 2 > threshold
                || bytea::decode(&value[..value.len().min(64)])
                    .is_ok_and(|start| begins_like_reference(ValueKind::Bytea, &start))
                || begins_like_escaped_magic(value)
        }
        (ValueKind::Jsonb, true) => {
            value.len() > threshold
                || begins_like_reference(column.kind, value.get(1..).unwrap_or(&[]))
        }
        _ => value.len() > threshold || begins_like_reference(column.kind, value),
    }
}

fn begins_like_escaped_magic(value: &[u8]) -> bool {
    value.starts_with(br"\367TOAST")
}

fn prepare<'v>(
    column: &Column,
    value: &'v [u8],
    binary: bool,
) -> Result<Prepared<'v>, InlineReason> {
    let doubtful = InlineReason::Doubtful;
    let prepared = match column.kind {
        ValueKind::Text | ValueKind::Varchar => {
            let char_len = text::utf8_chars(value).ok_or(doubtful)?;
            if column.max_chars.is_some_and(|most| char_len > most) {
                return Err(InlineReason::TypeModifier);
            }
            Prepared {
                value: Cow::Borrowed(value),
                char_len,
            }
        }
        ValueKind::Json => {
            if !json::valid_json(value) {
                return Err(doubtful);
            }
            let char_len = text::utf8_chars(value).ok_or(doubtful)?;
            Prepared {
                value: Cow::Borrowed(value),
                char_len,
            }
        }
        ValueKind::Jsonb => {
            // The binary form is a version byte, 1, and the text.
            let text = match (binary, value) {
                (false, text) => text,
                (true, [1, text @ ..]) => text,
                (true, _) => return Err(doubtful),
            };
            let canonical = json::canonical_jsonb_cow(text).map_err(|_| doubtful)?;
            let char_len = text::utf8_chars(&canonical).ok_or(doubtful)?;
            Prepared {
                value: canonical,
                char_len,
            }
        }
        ValueKind::Bytea => {
            let bytes = if binary {
                Cow::Borrowed(value)
            } else {
                Cow::Owned(bytea::decode(value).map_err(|_| doubtful)?)
            };
            let char_len = u32::try_from(bytes.len()).map_err(|_| InlineReason::TooLarge)?;
            Prepared {
                value: bytes,
                char_len,
            }
        }
    };
    Ok(prepared)
}
