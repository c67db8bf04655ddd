//! Values that are stored in pieces: a manifest is only as good as what it names.

use super::Inspector;
use crate::error::StoreError;
use crate::format::manifest;
use crate::key::StoreKey;
use crate::kind::Codec;
use crate::reference::{Address, Reference};

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
        let key = self.key_of_pieces(address)?;
        let (_, payload) = self.read_record(address)?;
        let pieces = manifest::pieces_of(key, address, &payload)?;
        let sealed = pieces.into_iter().map(|piece| Reference::seal(key, piece));
        Ok(sealed.collect())
    }

    /// The value whose manifest, at `address`, has this payload.
    pub(super) fn put_together(
        &self,
        address: &Address,
        payload: &[u8],
    ) -> Result<Vec<u8>, StoreError> {
        let key = self.key_of_pieces(address)?;
        let piece = |piece: &Address| self.read_record(piece).map(|(_, bytes)| bytes);
        let value = manifest::assemble(key, address, payload, piece)?;
        if key.identity(&value) != address.identity {
            let seen = "its content has another identity";
            return Err(StoreError::corrupt(address.segment, address.offset, seen));
        }
        Ok(value)
    }

    fn key_of_pieces(&self, address: &Address) -> Result<&StoreKey, StoreError> {
        self.key.as_ref().map_err(|_| {
            let seen = "its list of pieces cannot be read without the store's key";
            StoreError::corrupt(address.segment, address.offset, seen)
        })
    }
}
