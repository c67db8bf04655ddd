//! The receive buffer of one direction.

use std::time::Duration;

use bytes::{Bytes, BytesMut};

/// Bytes received and not yet looked at.
pub(super) struct Inbox {
    pub(super) bytes: BytesMut,
}

pub(super) const START_CAPACITY: usize = 8 * 1024;
/// A session that has waited for so long gives back the room that a large message or result took.
pub(super) const IDLE: Duration = Duration::from_secs(1);
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

    /// Whether it has more room than a session needs that waits.
    pub(super) fn is_roomy(&self) -> bool {
        self.bytes.is_empty() && self.bytes.capacity() > START_CAPACITY
    }

    /// Gives room back.
    pub(super) fn shrink(&mut self) {
        if self.is_roomy() {
            self.bytes = BytesMut::with_capacity(START_CAPACITY);
        }
    }

    /// Takes one whole frame off the front.
    pub(super) fn take(&mut self, len: usize) -> Bytes {
        self.bytes.split_to(len).freeze()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Proves: room for a large message is given back, but never a byte that was received.
    #[test]
    fn room_is_given_back_once_nothing_is_in_it() {
        let mut inbox = Inbox::new(b"");
        assert!(!inbox.is_roomy());
        inbox.make_room(START_CAPACITY);
        inbox.bytes.extend_from_slice(&[7; 100_000]);
        inbox.shrink();
        assert_eq!(inbox.bytes.len(), 100_000);
        assert_eq!(inbox.take(100_000), [7; 100_000][..]);
        inbox.make_room(100_000);
        assert!(inbox.is_roomy());
        inbox.shrink();
        assert!(!inbox.is_roomy());
        assert_eq!(inbox.bytes.capacity(), START_CAPACITY);
    }
}
