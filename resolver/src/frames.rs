//! Hands pgwire one whole, checked frame at a time.
//!
//! Promises:   Q1. pgwire 0.42's decoders panic on some malformed messages, read past a `Query`
//!             that has no NUL into the next message, and buffer up to 1 GiB for a peer that has
//!             not logged in. Behind this reader they see only frames of the few kinds that a
//!             client of the resolver sends, each within its limit, each shaped as it should be.
//! Fails:      with [`FrameError`] inside the `io::Error`; the connection must end.
//! Proof:      tests below, src/tests/wire.rs

use std::io;
use std::pin::Pin;
use std::task::{Context, Poll};

use bytes::{Buf, BytesMut};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

/// Longest start-up message; Postgres' own limit.
const MAX_STARTUP_LEN: usize = 10_000;
/// Longest log-in message.
const MAX_LOGIN_LEN: usize = 2_048;
/// Longest query message: the one statement needs about a hundred bytes, `SET` of a driver a few
/// hundred.
const MAX_QUERY_LEN: usize = 4_096;
/// Bytes read from the socket at a time.
const READ_LEN: usize = 2_048;

/// Which frames may come.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Phase {
    /// The start-up message, which has no tag.
    Startup,
    /// The first log-in message: mechanism and SCRAM's client-first.
    Login,
    /// The second log-in message: SCRAM's client-final.
    Proof,
    /// Queries.
    Queries,
}

/// Why a frame was refused.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub(crate) enum FrameError {
    #[error("message of {len} bytes where {least} to {most} are allowed")]
    Length {
        len: usize,
        least: usize,
        most: usize,
    },
    #[error("message type 0x{tag:02x} is not expected here")]
    UnexpectedTag { tag: u8 },
    #[error("only simple queries are answered; message type \"{tag}\" is not")]
    ExtendedProtocol { tag: char },
    #[error("the message is not terminated as it should be")]
    Unterminated,
}

impl FrameError {
    pub(crate) fn sqlstate(&self) -> &'static str {
        match self {
            FrameError::ExtendedProtocol { .. } => "0A000",
            FrameError::Length { .. }
            | FrameError::UnexpectedTag { .. }
            | FrameError::Unterminated => "08P01",
        }
    }
}

/// A stream whose read side yields nothing but checked frames.
pub(crate) struct CheckedFrames<S> {
    inner: S,
    phase: Phase,
    buffer: BytesMut,
    /// Bytes at the start of `buffer` that are checked and not handed on yet.
    checked: usize,
}

impl<S> CheckedFrames<S> {
    /// `already_read` are bytes of the start-up message that were read to tell what it is.
    pub(crate) fn new(inner: S, already_read: &[u8]) -> CheckedFrames<S> {
        CheckedFrames {
            inner,
            phase: Phase::Startup,
            buffer: BytesMut::from(already_read),
            checked: 0,
        }
    }

    /// Says that the log-in is over. No frame is looked at before it is asked for, so this takes
    /// effect for the very next one.
    pub(crate) fn logged_in(&mut self) {
        self.phase = Phase::Queries;
    }

    /// Length of the frame at the start of the buffer, once all of it is there.
    fn check(&mut self) -> Result<Option<usize>, FrameError> {
        let frame = match self.phase {
            Phase::Startup => whole_startup(&self.buffer)?,
            Phase::Login => whole_message(&self.buffer, login_rule)?,
            Phase::Proof => whole_message(&self.buffer, proof_rule)?,
            Phase::Queries => whole_message(&self.buffer, query_rule)?,
        };
        if frame.is_some() {
            self.phase = match self.phase {
                Phase::Startup => Phase::Login,
                Phase::Login => Phase::Proof,
                later => later,
            };
        }
        Ok(frame)
    }
}

/// The whole start-up message: length, version, pairs of strings, NUL.
fn whole_startup(buffer: &[u8]) -> Result<Option<usize>, FrameError> {
    let Some(len) = length_at(buffer, 0) else {
        return Ok(None);
    };
    allow(len, 9, MAX_STARTUP_LEN)?;
    let Some(frame) = buffer.get(..len) else {
        return Ok(None);
    };
    let mut rest = &frame[8..];
    loop {
        let name = cstring(&mut rest)?;
        if name.is_empty() {
            break;
        }
        cstring(&mut rest)?;
    }
    match rest.is_empty() {
        true => Ok(Some(len)),
        false => Err(FrameError::Unterminated),
    }
}

/// Shortest and longest length field of a message, and the shape of its body.
struct Rule {
    least: usize,
    most: usize,
    body: Body,
}

/// What a body must be.
enum Body {
    /// Whatever it is, it ends where the message does.
    Bytes,
    /// One NUL-terminated string.
    String,
    /// A NUL-terminated string and bytes with their length in front.
    StringAndBytes,
}

fn login_rule(tag: u8) -> Result<Rule, FrameError> {
    match tag {
        b'p' => Ok(Rule {
            least: 9,
            most: MAX_LOGIN_LEN,
            body: Body::StringAndBytes,
        }),
        other => proof_rule(other),
    }
}

fn proof_rule(tag: u8) -> Result<Rule, FrameError> {
    match tag {
        b'p' => Ok(Rule {
            least: 5,
            most: MAX_LOGIN_LEN,
            body: Body::Bytes,
        }),
        b'X' => Ok(TERMINATE),
        tag => Err(FrameError::UnexpectedTag { tag }),
    }
}

fn query_rule(tag: u8) -> Result<Rule, FrameError> {
    match tag {
        b'Q' => Ok(Rule {
            least: 5,
            most: MAX_QUERY_LEN,
            body: Body::String,
        }),
        b'X' => Ok(TERMINATE),
        b'P' | b'B' | b'D' | b'E' | b'C' | b'S' | b'H' | b'F' => {
            Err(FrameError::ExtendedProtocol { tag: tag.into() })
        }
        tag => Err(FrameError::UnexpectedTag { tag }),
    }
}

const TERMINATE: Rule = Rule {
    least: 4,
    most: 4,
    body: Body::Bytes,
};

/// A whole message behind a tag, by the rule of its tag. The tag is judged before the length, and
/// the length before anything is buffered for it.
fn whole_message(
    buffer: &[u8],
    rule: fn(u8) -> Result<Rule, FrameError>,
) -> Result<Option<usize>, FrameError> {
    let Some(tag) = buffer.first() else {
        return Ok(None);
    };
    let rule = rule(*tag)?;
    let Some(len) = length_at(buffer, 1) else {
        return Ok(None);
    };
    allow(len, rule.least, rule.most)?;
    let Some(frame) = buffer.get(..len + 1) else {
        return Ok(None);
    };
    let mut body = &frame[5..];
    let complete = match rule.body {
        Body::Bytes => true,
        Body::String => {
            cstring(&mut body)?;
            body.is_empty()
        }
        Body::StringAndBytes => {
            cstring(&mut body)?;
            length_at(body, 0).is_some_and(|len| body.len() - 4 == len)
        }
    };
    match complete {
        true => Ok(Some(len + 1)),
        false => Err(FrameError::Unterminated),
    }
}

fn length_at(buffer: &[u8], at: usize) -> Option<usize> {
    let bytes = buffer.get(at..at + 4)?.first_chunk::<4>()?;
    // A negative length becomes a huge one, which no rule allows.
    usize::try_from(u32::from_be_bytes(*bytes)).ok()
}

fn allow(len: usize, least: usize, most: usize) -> Result<(), FrameError> {
    match (least..=most).contains(&len) {
        true => Ok(()),
        false => Err(FrameError::Length { len, least, most }),
    }
}

/// Splits a NUL-terminated string off the front.
fn cstring<'a>(rest: &mut &'a [u8]) -> Result<&'a [u8], FrameError> {
    let end = rest.iter().position(|byte| *byte == 0);
    let end = end.ok_or(FrameError::Unterminated)?;
    let string = &rest[..end];
    *rest = &rest[end + 1..];
    Ok(string)
}

impl<S: AsyncRead + Unpin> AsyncRead for CheckedFrames<S> {
    fn poll_read(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
        out: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let this = self.get_mut();
        loop {
            if this.checked > 0 {
                // Never more than the rest of one frame: keeps Q1.
                let len = this.checked.min(out.remaining());
                out.put_slice(&this.buffer[..len]);
                this.buffer.advance(len);
                this.checked -= len;
                return Poll::Ready(Ok(()));
            }
            match this.check() {
                Ok(Some(len)) => {
                    this.checked = len;
                    continue;
                }
                Ok(None) => {}
                Err(error) => {
                    let error = io::Error::new(io::ErrorKind::InvalidData, error);
                    return Poll::Ready(Err(error));
                }
            }
            let mut chunk = [0u8; READ_LEN];
            let mut chunk = ReadBuf::new(&mut chunk);
            std::task::ready!(Pin::new(&mut this.inner).poll_read(context, &mut chunk))?;
            if chunk.filled().is_empty() {
                return Poll::Ready(Ok(()));
            }
            this.buffer.extend_from_slice(chunk.filled());
        }
    }
}

impl<S: AsyncWrite + Unpin> AsyncWrite for CheckedFrames<S> {
    fn poll_write(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.get_mut().inner).poll_write(context, bytes)
    }

    fn poll_flush(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.get_mut().inner).poll_flush(context)
    }

    fn poll_shutdown(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.get_mut().inner).poll_shutdown(context)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tokio::io::AsyncReadExt;

    const STARTUP: &[u8] = b"\0\0\0\x10\0\x03\0\0user\0x\0\0";

    /// Reads all that the reader lets through of `input`, after a log-in when `phase` says so.
    async fn through(phase: Phase, input: &[u8]) -> Result<Vec<Vec<u8>>, FrameError> {
        let mut frames = CheckedFrames::new(input, b"");
        frames.phase = phase;
        let mut seen = Vec::new();
        loop {
            let mut buffer = [0u8; 20_000];
            match frames.read(&mut buffer).await {
                Ok(0) => return Ok(seen),
                Ok(len) => seen.push(buffer[..len].to_vec()),
                Err(error) => {
                    let inner = error.into_inner().unwrap();
                    return Err(*inner.downcast::<FrameError>().unwrap());
                }
            }
        }
    }

    fn frame(tag: u8, body: &[u8]) -> Vec<u8> {
        let len = (body.len() + 4) as u32;
        [&[tag][..], &len.to_be_bytes(), body].concat()
    }

    /// Proves that frames are handed on one at a time, whole, and in order.
    #[tokio::test]
    async fn frames_come_one_at_a_time() {
        let one = frame(b'Q', b"one\0");
        let two = frame(b'Q', b"two\0");
        let end = frame(b'X', b"");
        let all = [one.clone(), two.clone(), end.clone()].concat();
        assert_eq!(through(Phase::Queries, &all).await, Ok(vec![one, two, end]));

        let login = frame(b'p', b"SCRAM\0\0\0\0\x02xy");
        let proof = frame(b'p', b"anything");
        let start = [STARTUP, &login, &proof].concat();
        let seen = through(Phase::Startup, &start).await;
        assert_eq!(seen, Ok(vec![STARTUP.to_vec(), login, proof]));
    }

    /// Proves that a frame that is cut short is never handed on, wherever it is cut.
    #[tokio::test]
    async fn partial_frames_stay_back() {
        let query = frame(b'Q', b"select 1\0");
        for len in 0..query.len() {
            assert_eq!(through(Phase::Queries, &query[..len]).await, Ok(vec![]));
        }
        for len in 0..STARTUP.len() {
            assert_eq!(through(Phase::Startup, &STARTUP[..len]).await, Ok(vec![]));
        }
    }

    /// Proves each refusal, in the phase in which it applies.
    #[tokio::test]
    async fn malformed_frames_are_refused() {
        use FrameError::{ExtendedProtocol, Length, UnexpectedTag, Unterminated};
        let huge = b"Q\x7f\xff\xff\xff".to_vec();
        let negative = b"Q\xff\xff\xff\xff".to_vec();
        let cases: Vec<(Phase, Vec<u8>, FrameError)> = vec![
            (
                Phase::Queries,
                huge,
                Length {
                    len: 0x7fff_ffff,
                    least: 5,
                    most: MAX_QUERY_LEN,
                },
            ),
            (
                Phase::Queries,
                negative,
                Length {
                    len: 0xffff_ffff,
                    least: 5,
                    most: MAX_QUERY_LEN,
                },
            ),
            (
                Phase::Queries,
                frame(b'Q', b""),
                Length {
                    len: 4,
                    least: 5,
                    most: MAX_QUERY_LEN,
                },
            ),
            (Phase::Queries, frame(b'Q', b"no nul"), Unterminated),
            (Phase::Queries, frame(b'Q', b"a\0b\0"), Unterminated),
            (
                Phase::Queries,
                frame(b'X', b"x"),
                Length {
                    len: 5,
                    least: 4,
                    most: 4,
                },
            ),
            (
                Phase::Queries,
                frame(b'P', b"\0\0\0\0"),
                ExtendedProtocol { tag: 'P' },
            ),
            (
                Phase::Queries,
                frame(b'p', b"x\0"),
                UnexpectedTag { tag: b'p' },
            ),
            (Phase::Queries, frame(0, b""), UnexpectedTag { tag: 0 }),
            (
                Phase::Login,
                frame(b'Q', b"x\0"),
                UnexpectedTag { tag: b'Q' },
            ),
            (
                Phase::Login,
                frame(b'p', b""),
                Length {
                    len: 4,
                    least: 9,
                    most: MAX_LOGIN_LEN,
                },
            ),
            (Phase::Login, frame(b'p', b"SCRAM-SHA-256"), Unterminated),
            (Phase::Login, frame(b'p', b"SCRAM\0\0\0\0"), Unterminated),
            (
                Phase::Login,
                frame(b'p', b"SCRAM\0\0\0\0\x02x"),
                Unterminated,
            ),
            (
                Phase::Login,
                frame(b'p', b"SCRAM\0\xff\xff\xff\xff"),
                Unterminated,
            ),
            (
                Phase::Proof,
                frame(b'p', b""),
                Length {
                    len: 4,
                    least: 5,
                    most: MAX_LOGIN_LEN,
                },
            ),
            (
                Phase::Proof,
                frame(b'Q', b"x\0"),
                UnexpectedTag { tag: b'Q' },
            ),
            (
                Phase::Startup,
                b"\x16\x03\x01\x02\0".to_vec(),
                Length {
                    len: 0x1603_0102,
                    least: 9,
                    most: MAX_STARTUP_LEN,
                },
            ),
            (
                Phase::Startup,
                b"\0\0\0\x08\0\x03\0\0".to_vec(),
                Length {
                    len: 8,
                    least: 9,
                    most: MAX_STARTUP_LEN,
                },
            ),
            (
                Phase::Startup,
                b"\0\0\0\x0c\0\x03\0\0user".to_vec(),
                Unterminated,
            ),
            (
                Phase::Startup,
                b"\0\0\0\x0d\0\x03\0\0user\0".to_vec(),
                Unterminated,
            ),
            (
                Phase::Startup,
                b"\0\0\0\x0a\0\x03\0\0\0x".to_vec(),
                Unterminated,
            ),
        ];
        for (phase, input, expected) in cases {
            let seen = through(phase, &input).await;
            assert_eq!(seen, Err(expected), "{phase:?} {input:?}");
        }
    }
}
