//! The section `[server]`.

use toastrack_proxy::TargetSession;
use toml::Value;

use super::parse::{boolean, one_of, server_location};
use super::raw::RawServer;
use super::tls::{is_encrypted, server_tls};
use super::validate::Section;
use super::{Problem, Server, ServerLocation};

/// libpq's names.
pub(super) const TARGET_SESSION_ATTRS: &[(&str, TargetSession)] = &[
    ("any", TargetSession::Any),
    ("read-write", TargetSession::ReadWrite),
    ("read-only", TargetSession::ReadOnly),
    ("primary", TargetSession::Primary),
    ("standby", TargetSession::Standby),
    ("prefer-standby", TargetSession::PreferStandby),
];

pub(super) fn server(raw: RawServer, problems: &mut Vec<Problem>) -> Server {
    let mut section = Section::new("server");
    if raw.address.is_some() && raw.addresses.is_some() {
        let message = "`address` and `addresses` exclude each other".to_owned();
        section.problem("address", message);
    }
    let one = section.optional("address", raw.address, server_location);
    let several = section.optional("addresses", raw.addresses, locations);
    let default = ServerLocation::Tcp("127.0.0.1".to_owned(), 5432);
    let addresses = several.unwrap_or_else(|| vec![one.unwrap_or(default)]);
    let target = raw.target_session_attrs;
    let target = section.take(
        "target_session_attrs",
        target,
        TargetSession::Any,
        |value| one_of(value, TARGET_SESSION_ATTRS),
    );
    let allow_remote = section.take("allow_remote", raw.allow_remote, false, boolean);
    let tls = server_tls(raw.tls, problems);
    let key = match addresses.len() {
        1 => "address",
        _ => "addresses",
    };
    for address in &addresses {
        let safe = address.is_local() || is_encrypted(&tls);
        section.check_remote(key, address, safe, allow_remote);
    }
    section.finish(raw.unknown, problems);
    Server {
        addresses,
        target,
        allow_remote,
        tls,
    }
}

fn locations(value: &Value) -> Result<Vec<ServerLocation>, String> {
    match value.as_array().map(Vec::as_slice) {
        None => Err(format!("expected an array, found {}", value.type_str())),
        Some([]) => Err("is empty".to_owned()),
        Some(values) => values.iter().map(server_location).collect(),
    }
}
