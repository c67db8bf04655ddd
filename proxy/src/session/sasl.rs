//! What the server offers for authentication, as far as it can succeed through the proxy.
//!
//! SCRAM with channel binding signs the certificate that the client was shown; the server compares it
//! with its own. Where the two differ, or one side has no TLS, that cannot succeed, and libpq ends a
//! connection without TLS on which it is offered. docs/tls.md has the combinations.

use std::io;

use bytes::{Bytes, BytesMut};
use toastrack_wire::frame::HEADER_LEN;
use toastrack_wire::{Direction, backend_header, encode_frame, tag::backend as tag};
use tokio::io::{AsyncReadExt, AsyncWriteExt};

use crate::server::Socket;

const SASL: [u8; 4] = 10_u32.to_be_bytes();
const WITH_BINDING: &[u8] = b"SCRAM-SHA-256-PLUS";

/// AuthenticationSASL without the mechanism that binds the channel; None for any other message, and
/// where nothing else is offered.
pub(super) fn without_channel_binding(frame: &Bytes) -> Option<Vec<u8>> {
    let mechanisms = frame.get(HEADER_LEN..)?.strip_prefix(&SASL)?;
    let mechanisms = mechanisms.strip_suffix(&[0, 0])?;
    let mut body = SASL.to_vec();
    let (mut kept, mut dropped) = (0, 0);
    for mechanism in mechanisms.split(|byte| *byte == 0) {
        if mechanism == WITH_BINDING {
            dropped += 1;
            continue;
        }
        kept += 1;
        body.extend_from_slice(mechanism);
        body.push(0);
    }
    body.push(0);
    if kept == 0 || dropped == 0 {
        return None;
    }
    let mut out = Vec::new();
    encode_frame(&mut out, Direction::Backend, tag::AUTHENTICATION, &body).ok()?;
    Some(out)
}

/// Passes on what a server says first, up to its offer, to a client whose session is not looked into
/// any further.
pub(super) async fn pass_offer(client: &mut Socket, server: &mut Socket) -> io::Result<()> {
    let mut inbox = BytesMut::new();
    loop {
        let header = match backend_header(&inbox) {
            Ok(Some(header)) if inbox.len() >= header.len => header,
            Ok(header) if header.is_none_or(|header| header.len <= LONGEST_OFFER) => {
                if server.read_buf(&mut inbox).await? == 0 {
                    break;
                }
                continue;
            }
            _ => break,
        };
        let frame = inbox.split_to(header.len).freeze();
        match without_channel_binding(&frame) {
            Some(offer) => client.write_all(&offer).await?,
            None => client.write_all(&frame).await?,
        }
        if header.tag == tag::AUTHENTICATION {
            break;
        }
    }
    client.write_all(&inbox).await?;
    client.flush().await
}

/// Before its offer a server says little: a notice, or which protocol it speaks.
const LONGEST_OFFER: usize = 64 * 1024;

#[cfg(test)]
mod tests {
    use super::*;

    fn message(body: &[u8]) -> Bytes {
        let mut out = Vec::new();
        encode_frame(&mut out, Direction::Backend, tag::AUTHENTICATION, body).unwrap();
        out.into()
    }

    /// Only the one mechanism goes; other messages, and offers that do not have it, stay.
    #[test]
    fn only_the_binding_mechanism_goes() {
        let offer = message(b"\0\0\0\x0aSCRAM-SHA-256-PLUS\0SCRAM-SHA-256\0\0");
        let left = message(b"\0\0\0\x0aSCRAM-SHA-256\0\0");
        assert_eq!(without_channel_binding(&offer).unwrap(), left);
        for unchanged in [
            &b"\0\0\0\x0aSCRAM-SHA-256\0\0"[..],
            b"\0\0\0\x0aSCRAM-SHA-256-PLUS\0\0",
            b"\0\0\0\x0aSCRAM-SHA-256-PLUS\0SCRAM",
            b"\0\0\0\x0a",
            b"\0\0\0\x00",
            b"",
        ] {
            assert_eq!(without_channel_binding(&message(unchanged)), None);
        }
    }
}
