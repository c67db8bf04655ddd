//! The sections `[listen.tls]` and `[server.tls]`.

use toastrack_proxy::{ServerTls, ServerTlsMode};

use super::parse::{absolute_path, one_of};
use super::raw::{RawListenTls, RawServerTls};
use super::validate::Section;
use super::{ListenTls, Problem, TlsMode};

pub(super) const LISTEN_TLS_MODES: &[(&str, TlsMode)] = &[
    ("off", TlsMode::Off),
    ("allow", TlsMode::Allow),
    ("require", TlsMode::Require),
];

/// libpq's names.
pub(super) const SERVER_TLS_MODES: &[(&str, ServerTlsMode)] = &[
    ("disable", ServerTlsMode::Disable),
    ("prefer", ServerTlsMode::Prefer),
    ("require", ServerTlsMode::Require),
    ("verify-ca", ServerTlsMode::VerifyCa),
    ("verify-full", ServerTlsMode::VerifyFull),
];

pub(super) fn listen_tls(raw: RawListenTls, problems: &mut Vec<Problem>) -> ListenTls {
    let mut section = Section::new("listen.tls");
    let tls = ListenTls {
        mode: section.take("mode", raw.mode, TlsMode::Off, |value| {
            one_of(value, LISTEN_TLS_MODES)
        }),
        certificate: section.optional("certificate", raw.certificate, absolute_path),
        key: section.optional("key", raw.key, absolute_path),
        client_ca: section.optional("client_ca", raw.client_ca, absolute_path),
    };
    // A wrong path has been reported already.
    if section.is_sound() && tls.mode != TlsMode::Off {
        for (key, file) in [("certificate", &tls.certificate), ("key", &tls.key)] {
            if file.is_none() {
                section.problem(key, "is needed unless `mode` is \"off\"".to_owned());
            }
        }
        if tls.client_ca.is_some() && tls.mode != TlsMode::Require {
            let message =
                "sessions without TLS would need no certificate: `mode` has to be \"require\"";
            section.problem("client_ca", message.to_owned());
        }
    }
    section.finish(raw.unknown, problems);
    tls
}

pub(super) fn server_tls(raw: RawServerTls, problems: &mut Vec<Problem>) -> ServerTls {
    let mut section = Section::new("server.tls");
    let tls = ServerTls {
        mode: section.take("mode", raw.mode, ServerTlsMode::Disable, |value| {
            one_of(value, SERVER_TLS_MODES)
        }),
        ca: section.optional("ca", raw.ca, absolute_path),
        certificate: section.optional("certificate", raw.certificate, absolute_path),
        key: section.optional("key", raw.key, absolute_path),
    };
    if section.is_sound() {
        let verifies = [ServerTlsMode::VerifyCa, ServerTlsMode::VerifyFull].contains(&tls.mode);
        if verifies && tls.ca.is_none() {
            section.problem("ca", "is needed to verify the server".to_owned());
        }
        if tls.certificate.is_some() != tls.key.is_some() {
            let key = if tls.key.is_some() {
                "certificate"
            } else {
                "key"
            };
            let message = "`certificate` and `key` need each other";
            section.problem(key, message.to_owned());
        }
    }
    section.finish(raw.unknown, problems);
    tls
}

/// Whether nothing passes without TLS.
pub(super) fn is_encrypted(tls: &ServerTls) -> bool {
    !matches!(tls.mode, ServerTlsMode::Disable | ServerTlsMode::Prefer)
}
