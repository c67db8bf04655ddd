//! From one TOML value to one setting; the error says what is wrong with the value.

use std::fmt::Display;
use std::net::SocketAddr;
use std::ops::RangeInclusive;
use std::path::{Path, PathBuf};
use std::str::FromStr;
use std::time::Duration;

use toastrack_proxy::UnixListen;
use toml::Value;
use tracing_subscriber::EnvFilter;

use super::{Group, ResolverListen, ServerLocation, Source};
use crate::units::{ByteSize, Span};

const MIB: u64 = 1 << 20;
const SEGMENT_SIZE_STEP: u64 = 4096;
/// What Linux takes, its final NUL left out.
const MAX_SOCKET_PATH: usize = 107;
pub(super) const DEFAULT_RESOLVER_PORT: u16 = 6434;

pub(super) fn text(value: &Value) -> Result<String, String> {
    match value.as_str() {
        Some("") => Err("is empty".to_owned()),
        Some(text) => Ok(text.to_owned()),
        None => Err(format!("expected a string, found {}", value.type_str())),
    }
}

pub(super) fn boolean(value: &Value) -> Result<bool, String> {
    value
        .as_bool()
        .ok_or_else(|| format!("expected true or false, found {}", value.type_str()))
}

pub(super) fn parsed<T: FromStr<Err: Display>>(value: &Value) -> Result<T, String> {
    let text = text(value)?;
    text.parse()
        .map_err(|error| format!("`{text}`: {error} (expected an IP address and a port)"))
}

pub(super) fn absolute_path(value: &Value) -> Result<PathBuf, String> {
    let path = PathBuf::from(text(value)?);
    if path.is_absolute() {
        Ok(path)
    } else {
        Err(format!("`{}` is not an absolute path", path.display()))
    }
}

/// `port` is that of the TCP listener, after which a socket in a directory is named.
pub(super) fn socket_path(value: &Value, port: u16) -> Result<PathBuf, String> {
    let path = absolute_path(value)?;
    let listen = UnixListen { path, mode: 0 };
    // A port that the system is to choose may have five digits.
    let file = listen.file(if port == 0 { u16::MAX } else { port });
    if file.as_os_str().len() > MAX_SOCKET_PATH {
        return Err(format!(
            "`{}` is longer than {MAX_SOCKET_PATH} bytes, the longest path of a Unix socket",
            file.display()
        ));
    }
    Ok(listen.path)
}

/// Permissions as Postgres and chmod spell them.
pub(super) fn file_mode(value: &Value) -> Result<u32, String> {
    let Some(text) = value.as_str() else {
        return Err(format!(
            "expected permissions such as \"0700\", found {}",
            value.type_str()
        ));
    };
    let mode = u32::from_str_radix(text, 8).ok();
    mode.filter(|mode| *mode <= 0o777)
        .ok_or_else(|| format!("`{text}` is not in octal, from 0000 to 0777"))
}

pub(super) fn segment_size(value: &Value) -> Result<u64, String> {
    let bytes = size(value, 64 << 10..=4096 * MIB)?;
    if bytes.is_multiple_of(SEGMENT_SIZE_STEP) {
        Ok(bytes)
    } else {
        Err(format!("{bytes} is not a multiple of {SEGMENT_SIZE_STEP}"))
    }
}

fn within<T: PartialOrd>(
    value: T,
    range: &RangeInclusive<T>,
    show: impl Fn(&T) -> String,
) -> Result<T, String> {
    if range.contains(&value) {
        return Ok(value);
    }
    Err(format!(
        "{} is outside of {} to {}",
        show(&value),
        show(range.start()),
        show(range.end())
    ))
}

pub(super) fn size(value: &Value, range: RangeInclusive<u64>) -> Result<u64, String> {
    let bytes = match value {
        Value::Integer(bytes) => u64::try_from(*bytes).map_err(|_| "is negative".to_owned())?,
        Value::String(text) => text.parse::<ByteSize>()?.0,
        other => {
            return Err(format!(
                "expected a size such as \"64 MiB\", found {}",
                other.type_str()
            ));
        }
    };
    within(bytes, &range, |bytes| ByteSize(*bytes).to_string())
}

pub(super) fn span(value: &Value, range: RangeInclusive<Duration>) -> Result<Duration, String> {
    let text = value.as_str().ok_or_else(|| {
        format!(
            "expected a duration such as \"5s\", found {}",
            value.type_str()
        )
    })?;
    within(text.parse::<Span>()?.0, &range, |duration| {
        Span(*duration).to_string()
    })
}

pub(super) fn integer(value: &Value, range: RangeInclusive<usize>) -> Result<usize, String> {
    let number = value
        .as_integer()
        .ok_or_else(|| format!("expected a whole number, found {}", value.type_str()))?;
    let number = usize::try_from(number).map_err(|_| "is negative".to_owned())?;
    within(number, &range, usize::to_string)
}

pub(super) fn number(value: &Value, range: RangeInclusive<f64>) -> Result<f64, String> {
    let number = match value {
        Value::Integer(number) => *number as f64,
        Value::Float(number) => *number,
        other => return Err(format!("expected a number, found {}", other.type_str())),
    };
    within(number, &range, f64::to_string)
}

pub(super) fn one_of<T: Copy>(value: &Value, choices: &[(&str, T)]) -> Result<T, String> {
    let text = text(value)?;
    let found = choices.iter().find(|(name, _)| *name == text);
    found.map(|(_, choice)| *choice).ok_or_else(|| {
        let names: Vec<String> = choices
            .iter()
            .map(|(name, _)| format!("\"{name}\""))
            .collect();
        format!("`{text}` is not one of {}", names.join(", "))
    })
}

pub(super) fn log_level(value: &Value) -> Result<String, String> {
    let text = text(value)?;
    EnvFilter::try_new(&text).map_err(|error| format!("`{text}`: {error}"))?;
    Ok(text)
}

pub(super) fn server_location(value: &Value) -> Result<ServerLocation, String> {
    let text = text(value)?;
    if text.starts_with('/') {
        return Ok(ServerLocation::Unix(PathBuf::from(text)));
    }
    let (host, port) = text
        .rsplit_once(':')
        .ok_or_else(|| format!("`{text}` is neither host:port nor the path of a socket"))?;
    let host = host.trim_start_matches('[').trim_end_matches(']');
    let port = port
        .parse()
        .ok()
        .filter(|port| *port != 0)
        .ok_or_else(|| format!("`{text}` has no port from 1 to 65535"))?;
    if host.is_empty() {
        return Err(format!("`{text}` has no host"));
    }
    Ok(ServerLocation::Tcp(host.to_owned(), port))
}

pub(super) fn resolver_listen(value: &Value) -> Result<ResolverListen, String> {
    let text = text(value)?;
    let Some(place) = text.strip_prefix("unix:") else {
        let address: SocketAddr = parsed(value)?;
        if !address.ip().is_loopback() {
            return Err(format!(
                "{address} is not loopback: the resolver listens on loopback or a Unix socket"
            ));
        }
        return Ok(ResolverListen::Tcp(address));
    };
    let (directory, port) = match place.rsplit_once(':') {
        Some((directory, port)) => {
            let port = port
                .parse()
                .map_err(|_| format!("`{text}` ends with no port from 0 to 65535"))?;
            (directory, port)
        }
        None => (place, DEFAULT_RESOLVER_PORT),
    };
    let directory = PathBuf::from(directory);
    if !directory.is_absolute() {
        return Err(format!("`{}` is not an absolute path", directory.display()));
    }
    Ok(ResolverListen::Unix { directory, port })
}

pub(super) fn group(value: &Value, source: &dyn Source) -> Result<Group, String> {
    let name = text(value)?;
    let file = source
        .read(Path::new("/etc/group"))
        .map_err(|error| format!("/etc/group: {error}"))?;
    let gid = file.lines().find_map(|line| {
        let mut fields = line.split(':');
        (fields.next() == Some(name.as_str())).then(|| fields.nth(1)?.parse().ok())?
    });
    match gid {
        Some(gid) => Ok(Group { name, gid }),
        None => Err(format!("there is no group `{name}` on this system")),
    }
}
