//! The configuration: every problem is reported with its key, and what is printed reads back.

use std::path::Path;

use super::source::MapSource;
use super::*;

fn load(text: &str) -> Result<Config, Vec<(String, String)>> {
    let source = MapSource::default()
        .with("/t.toml", text)
        .with("/etc/group", "root:x:0:\npostgres:x:104:alice\n")
        .with("/run/password", "hunter2\nsecond line\n")
        .with("/run/empty", "\n");
    Config::load(Path::new("/t.toml"), &source).map_err(|error| {
        error
            .problems
            .into_iter()
            .map(|problem| (problem.key, problem.message))
            .collect()
    })
}

/// An empty file is valid and gives the documented defaults.
#[test]
fn defaults() {
    let config = Config::defaults().unwrap();
    assert_eq!(config.listen.address.to_string(), "127.0.0.1:6432");
    assert_eq!(
        config.server.addresses,
        [ServerLocation::Tcp("127.0.0.1".into(), 5432)]
    );
    assert_eq!(config.offload.threshold, 2048);
    assert_eq!(config.cache.size, 256 << 20);
    assert_eq!(config.store.segment_size, 256 << 20);
    assert_eq!(
        config.admin.token_file,
        Path::new("/var/lib/toastrack/admin-token")
    );
}

/// Each wrong value is refused alone, under its key, with a reason that says what is wrong.
#[test]
fn each_problem_names_its_key() {
    for (text, key, reason) in [
        (
            "[listen]\naddress = 5",
            "listen.address",
            "expected a string",
        ),
        (
            "[listen]\naddress = \"localhost\"",
            "listen.address",
            "an IP address and a port",
        ),
        (
            "[listen]\naddress = \"0.0.0.0:6432\"",
            "listen.address",
            "allow_remote",
        ),
        (
            "[listen]\nunix_socket = \"run\"",
            "listen.unix_socket",
            "not an absolute path",
        ),
        (
            "[listen]\nunix_socket_mode = \"0789\"",
            "listen.unix_socket_mode",
            "not in octal",
        ),
        (
            "[listen]\nunix_socket_mode = 700",
            "listen.unix_socket_mode",
            "expected permissions",
        ),
        ("[listen]\nadress = \"\"", "listen.adress", "no such key"),
        ("[listne]\na = 1", "listne", "no such section"),
        (
            "[listen.tls]\nmode = \"on\"",
            "listen.tls.mode",
            "\"off\", \"allow\", \"require\"",
        ),
        (
            "[listen.tls]\nmode = \"allow\"\ncertificate = \"/a\"",
            "listen.tls.key",
            "is needed",
        ),
        (
            "[listen.tls]\nmode = \"allow\"\ncertificate = \"/a\"\nkey = \"/b\"\nclient_ca = \"/c\"",
            "listen.tls.client_ca",
            "has to be \"require\"",
        ),
        (
            "[listen]\naddress = \"0.0.0.0:1\"\n[listen.tls]\nmode = \"allow\"\ncertificate = \"/a\"\nkey = \"/b\"",
            "listen.address",
            "allow_remote",
        ),
        ("[listen.tls]\nca = 1", "listen.tls.ca", "no such key"),
        (
            "[server.tls]\nmode = \"allow\"",
            "server.tls.mode",
            "\"verify-full\"",
        ),
        (
            "[server.tls]\nmode = \"verify-ca\"",
            "server.tls.ca",
            "needed to verify",
        ),
        (
            "[server.tls]\nmode = \"require\"\nkey = \"/k\"",
            "server.tls.certificate",
            "need each other",
        ),
        (
            "[server]\naddress = \"db.example:5432\"\n[server.tls]\nmode = \"prefer\"",
            "server.address",
            "allow_remote",
        ),
        (
            "[server]\naddress = \"db.example:5432\"",
            "server.address",
            "allow_remote",
        ),
        (
            "[server]\naddress = \"localhost\"",
            "server.address",
            "neither host:port",
        ),
        (
            "[server]\naddress = \"localhost:0\"",
            "server.address",
            "no port",
        ),
        ("[server]\naddress = \":5432\"", "server.address", "no host"),
        (
            "[server]\naddress = \"/s\"\naddresses = [\"/s\"]",
            "server.address",
            "exclude each other",
        ),
        ("[server]\naddresses = []", "server.addresses", "is empty"),
        (
            "[server]\naddresses = \"/s\"",
            "server.addresses",
            "expected an array",
        ),
        (
            "[server]\naddresses = [\"/s\", \"b\"]",
            "server.addresses",
            "neither host:port",
        ),
        (
            "[server]\naddresses = [\"/s\", \"db.example:1\"]",
            "server.addresses",
            "allow_remote",
        ),
        (
            "[server]\ntarget_session_attrs = \"master\"",
            "server.target_session_attrs",
            "\"prefer-standby\"",
        ),
        ("[control]\nuser = \"\"", "control.user", "is empty"),
        (
            "[control]\npassword_file = \"/none\"",
            "control.password_file",
            "/none",
        ),
        (
            "[control]\npassword_file = \"/run/empty\"",
            "control.password_file",
            "empty",
        ),
        (
            "[control]\npassword = \"a\"\npassword_file = \"/run/password\"",
            "control.password",
            "exclude each other",
        ),
        (
            "[store]\ndirectory = \"rel\"",
            "store.directory",
            "not an absolute path",
        ),
        (
            "[store]\nsegment_size = \"1 KiB\"",
            "store.segment_size",
            "outside of 64 KiB to 4 GiB",
        ),
        (
            "[store]\nserver_group = \"nogroup\"",
            "store.server_group",
            "no group `nogroup`",
        ),
        (
            "[store]\ncompression = \"zip\"",
            "store.compression",
            "\"lz4\", \"none\"",
        ),
        (
            "[store]\nmin_saving_percent = 96",
            "store.min_saving_percent",
            "outside of 0 to 95",
        ),
        (
            "[store]\nmin_saving_percent = nan",
            "store.min_saving_percent",
            "outside of 0 to 95",
        ),
        (
            "[store]\ndedup_entries = -1",
            "store.dedup_entries",
            "negative",
        ),
        (
            "[offload]\nthreshold = \"2 MiB\"",
            "offload.threshold",
            "outside of 64 B to 1 MiB",
        ),
        (
            "[offload]\nthreshold = \"two\"",
            "offload.threshold",
            "is not a size",
        ),
        ("[cache]\nsize = true", "cache.size", "expected a size"),
        (
            "[resolver]\nlisten = \"unix:run\"",
            "resolver.listen",
            "not an absolute path",
        ),
        (
            "[resolver]\nlisten = \"unix:/run:x\"",
            "resolver.listen",
            "no port",
        ),
        (
            "[resolver]\nlisten = \"10.0.0.1:1\"",
            "resolver.listen",
            "is not loopback",
        ),
        (
            "[admin]\naddress = \"[::]:1\"",
            "admin.address",
            "allow_remote",
        ),
        (
            "[limits]\nmax_sessions = 0",
            "limits.max_sessions",
            "outside of 1 to 100000",
        ),
        (
            "[limits]\nstartup_timeout = 5",
            "limits.startup_timeout",
            "expected a duration",
        ),
        (
            "[limits]\ndrain_timeout = \"2h\"",
            "limits.drain_timeout",
            "outside of 0ms to 1h",
        ),
        ("[log]\nlevel = \"a=b=c\"", "log.level", "a=b=c"),
        (
            "[log]\nformat = \"xml\"",
            "log.format",
            "\"text\", \"json\"",
        ),
    ] {
        let problems = load(text).unwrap_err();
        assert_eq!(problems.len(), 1, "{text}: {problems:?}");
        assert_eq!(problems[0].0, key, "{text}");
        assert!(problems[0].1.contains(reason), "{text}: {}", problems[0].1);
    }
}

/// Problems in several sections, unknown keys among them, are reported together.
#[test]
fn all_problems_at_once() {
    let problems = load(
        "bogus = 1\n[cache]\nsize = \"x\"\nsizes = 1\n[log]\nformat = 1\n[limits]\nmax_sessions = 0\n",
    )
    .unwrap_err();
    let keys: Vec<&str> = problems.iter().map(|(key, _)| key.as_str()).collect();
    assert_eq!(
        keys,
        [
            "bogus",
            "cache.size",
            "cache.sizes",
            "limits.max_sessions",
            "log.format"
        ]
    );
}

/// A file that is not TOML is reported with the line.
#[test]
fn syntax_error_names_the_line() {
    let problems = load("[listen]\naddress = \n").unwrap_err();
    assert!(problems[0].1.contains("line 2"), "{problems:?}");
}

/// The message lists the file and one problem a line.
#[test]
fn error_text() {
    let source = MapSource::default().with("/t.toml", "[cache]\nsize = \"x\"\nother = 1");
    let error = Config::load(Path::new("/t.toml"), &source).unwrap_err();
    let text = error.to_string();
    assert_eq!(text.lines().count(), 2, "{text}");
    assert!(
        text.lines().all(|line| line.starts_with("/t.toml: cache.")),
        "{text}"
    );
}

const EVERYTHING: &str = r#"
[listen]
address = "0.0.0.0:7000"
unix_socket = "/run/toastrack"
unix_socket_mode = "0770"
allow_remote = true
[listen.tls]
mode = "require"
certificate = "/etc/toastrack/server.crt"
key = "/etc/toastrack/server.key"
client_ca = "/etc/toastrack/clients.crt"
[server]
addresses = ["[2001:db8::1]:5433", "db.example:5432", "/run/postgresql/.s.PGSQL.5432"]
target_session_attrs = "read-write"
allow_remote = true
[server.tls]
mode = "verify-full"
ca = "/etc/toastrack/root.crt"
certificate = "/etc/toastrack/toastrack.crt"
key = "/etc/toastrack/toastrack.key"
[control]
user = "sidecar"
password_file = "/run/password"
[store]
directory = "/srv/chunks"
segment_size = "64 MiB"
server_group = "postgres"
compression = "none"
min_saving_percent = 20
dedup_entries = 0
[offload]
threshold = 1000
[cache]
size = "0 B"
[resolver]
listen = "unix:/run/toastrack:7001"
secret_file = "/etc/toastrack/secret"
[admin]
address = "127.0.0.1:0"
token_file = "/etc/toastrack/token"
[limits]
max_sessions = 7
startup_timeout = "500ms"
drain_timeout = "2min"
[log]
level = "info,toastrack_proxy=debug"
format = "json"
"#;

/// Every key can be set, reaches its field, and survives printing and reading back.
#[test]
fn print_reads_back() {
    let config = load(EVERYTHING).unwrap();
    assert_eq!(
        config.store.server_group.as_ref().map(|group| group.gid),
        Some(104)
    );
    assert_eq!(
        config.control.password.as_ref().map(Secret::reveal),
        Some("hunter2")
    );
    assert_eq!(
        config.resolver.listen,
        ResolverListen::Unix {
            directory: "/run/toastrack".into(),
            port: 7001
        }
    );
    assert_eq!(load(&config.to_string()).unwrap(), config);
    let defaults = Config::defaults().unwrap();
    assert_eq!(load(&defaults.to_string()).unwrap(), defaults);
}

/// A password in the file is not printed, nor is one from a password file.
#[test]
fn secrets_are_not_printed() {
    let inline = load("[control]\npassword = \"hunter2\"").unwrap();
    let printed = format!("{inline} {inline:?}");
    assert!(printed.contains("password = \"***\""), "{printed}");
    assert!(!printed.contains("hunter2"), "{printed}");
    let from_file = load("[control]\npassword_file = \"/run/password\"").unwrap();
    assert!(!format!("{from_file} {from_file:?}").contains("hunter2"));
}

/// With TLS that is required no permission is needed for an address that others reach.
#[test]
fn tls_makes_remote_addresses_safe() {
    let text = "[listen]\naddress = \"0.0.0.0:6432\"\n[listen.tls]\nmode = \"require\"\n\
        certificate = \"/c\"\nkey = \"/k\"\n[server]\naddress = \"db.example:5432\"\n\
        [server.tls]\nmode = \"require\"\n";
    let config = load(text).unwrap();
    assert!(!config.listen.allow_remote && !config.server.allow_remote);
}

/// Every key of `expected`, in whatever section, is in `all`.
fn assert_shows(section: &str, all: &toml::Table, expected: &toml::Table) {
    for (key, value) in expected {
        let shown = all.get(key);
        assert!(shown.is_some(), "{section}{key} is not in the example");
        if let (Some(toml::Value::Table(shown)), toml::Value::Table(expected)) = (shown, value) {
            assert_shows(&format!("{section}{key}."), shown, expected);
        }
    }
}

/// The commented example file is valid, shows every key that can be set, and
/// states the default of each key that it leaves commented out.
#[test]
fn example_file_is_true() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../examples/toastrack.toml");
    let text = std::fs::read_to_string(path).unwrap();
    assert!(load(&text).is_ok(), "{:?}", load(&text));

    // With every commented-out key with a default switched on, nothing changes.
    let mut on = String::new();
    for line in text.lines() {
        let line = line.strip_prefix("#= ").unwrap_or(line);
        on.push_str(line);
        on.push('\n');
    }
    assert_eq!(load(&on).unwrap(), Config::defaults().unwrap());

    // And every key is there, those without a default behind `#? `.
    let all: toml::Table = text
        .lines()
        .map(|line| {
            let line = line.strip_prefix("#= ").unwrap_or(line);
            format!("{}\n", line.strip_prefix("#? ").unwrap_or(line))
        })
        .collect::<String>()
        .parse()
        .unwrap();
    let mut expected: toml::Table = EVERYTHING.parse().unwrap();
    let control = expected["control"].as_table_mut().unwrap();
    control.insert("password".to_owned(), "excluded by password_file".into());
    let server = expected["server"].as_table_mut().unwrap();
    server.insert("address".to_owned(), "excluded by addresses".into());
    assert_shows("", &all, &expected);
}
