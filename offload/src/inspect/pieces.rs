//! Values that are stored in pieces: a manifest is only as good as what it names.

use super::Inspector;
use crate::error::StoreError;
use crate::format::manifest;
use crate::kind::Codec;
use crate::reference::Reference;

impl Inspector {
    /// The pieces of a value; none for a value that is stored in one record.
    ///
    /// # Errors
    /// As [`Inspector::read`], of the manifest alone.
    pub fn pieces(&self, reference: &Reference) -> Result<Vec<Reference>, StoreError> {
        let address = reference.address();
        if address.codec != Codec::Manifest {
            return Ok(Vec::new());
        }
        let corrupt = |seen| StoreError::corrupt(address.segment, address.offset, seen);
        let key = self
            .key
            .as_ref()
            .map_err(|_| corrupt("its list of pieces cannot be read without the store's key"))?;
        let (chunk, payload) = self.read_at(address.segment, address.offset)?;
        if chunk.address() != Some(*address) {
            return Err(corrupt(
                "the record header does not agree with the reference",
            ));
        }
        let pieces = manifest::parse(key, &payload, address.logical_len as usize)
            .ok_or_else(|| corrupt("its list of pieces is not one"))?;
        let sealed = pieces.into_iter().map(|piece| Reference::seal(key, piece));
        Ok(sealed.collect())
    }
}
