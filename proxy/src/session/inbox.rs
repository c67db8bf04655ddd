//! The receive buffer of one direction.

use bytes::{Bytes, BytesMut};

/// Bytes received and not yet looked at.
pub(super) struct Inbox {
    pub(super) bytes: BytesMut,
}

const START_CAPACITY: usize = 8 * 1024;
const BUSY_CAPACITY: usize = 128 * 1024;

impl Inbox {
    pub(super) fn new(received: &[u8]) -> Inbox {
        let mut bytes = BytesMut::with_capacity(START_CAPACITY);
        bytes.extend_from_slice(received);
        Inbox { bytes }
    }

    /// Makes room for the next read: little while messages are small, more once a read filled it.
    pub(super) fn make_room(&mut self, last_read: usize) {
        let room = if last_read >= START_CAPACITY {
            BUSY_CAPACITY
        } else {
            START_CAPACITY
        };
        if self.bytes.capacity() - self.bytes.len() < START_CAPACITY / 2
            || last_read >= START_CAPACITY
        {
            self.bytes.reserve(room);
        }
    }

    /// Takes one whole frame off the front.
    pub(super) fn take(&mut self, len: usize) -> Bytes {
        self.bytes.split_to(len).freeze()
    }
}
