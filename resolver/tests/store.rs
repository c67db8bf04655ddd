//! The resolver over a real store, asked by tokio-postgres and by dblink in a private Postgres.

#![expect(clippy::unwrap_used, reason = "a failed step fails the test")]

use std::path::Path;

use toastrack_cache::DetoastCache;
use toastrack_offload::{Reference, Store, StoreOptions, ValueKind};
use toastrack_resolver::{Limits, Resolver, ResolverListen, Secret, USER};
use toastrack_testkit::Cluster;
use tokio_postgres::{Client, NoTls, SimpleQueryMessage};
use tokio_util::sync::CancellationToken;

const SECRET: &str = "0123456789abcdef0123456789abcdef";

fn open(directory: &Path) -> Store {
    Store::open(StoreOptions {
        directory: directory.to_owned(),
        segment_len_bytes: 4 << 20,
        ..StoreOptions::default()
    })
    .unwrap()
}

async fn put(store: &Store, kind: ValueKind, value: &[u8]) -> Reference {
    let chars = String::from_utf8_lossy(value).chars().count() as u32;
    let put = store.put(kind, chars, value).unwrap();
    store.durable(put.ticket).await.unwrap();
    put.reference
}

/// Starts a resolver over the store and returns how to connect to it.
async fn serve(store: Store, cache: DetoastCache) -> String {
    let resolver = Resolver::bind(
        ResolverListen::Tcp("127.0.0.1:0".parse().unwrap()),
        Secret::new(SECRET).unwrap(),
        store,
        cache,
        Limits::default(),
    )
    .await
    .unwrap();
    let (host, port) = resolver.local_address().host_and_port();
    tokio::spawn(resolver.serve(CancellationToken::new()));
    format!("host={host} port={port} user={USER} password={SECRET} dbname=toastrack")
}

async fn connect(conninfo: &str) -> Client {
    let (client, connection) = tokio_postgres::connect(conninfo, NoTls).await.unwrap();
    tokio::spawn(connection);
    client
}

fn text_of(reference: &Reference) -> String {
    String::from_utf8(reference.to_text().to_vec()).unwrap()
}

fn query(text: &str) -> String {
    format!("select toastrack.resolve('{text}')")
}

/// Asks the resolver itself; the value as bytes, or SQLSTATE and message.
async fn resolve(client: &Client, text: &str) -> Result<Vec<u8>, (String, String)> {
    let messages = client.simple_query(&query(text)).await.map_err(|error| {
        let error = error.as_db_error().unwrap();
        (error.code().code().to_owned(), error.message().to_owned())
    })?;
    let row = messages.iter().find_map(|message| match message {
        SimpleQueryMessage::Row(row) => row.get(0),
        _ => None,
    });
    let digits = row.unwrap().strip_prefix("\\x").unwrap().as_bytes();
    Ok(digits
        .chunks(2)
        .map(|pair| u8::from_str_radix(std::str::from_utf8(pair).unwrap(), 16).unwrap())
        .collect())
}

/// Values of each kind, from empty to the longest, compressible and not.
fn values() -> Vec<(ValueKind, Vec<u8>)> {
    let mut noise = 1u64;
    let mut random = |len: usize| -> Vec<u8> {
        (0..len)
            .map(|_| {
                noise = noise
                    .wrapping_mul(6_364_136_223_846_793_005)
                    .wrapping_add(1);
                (noise >> 56) as u8
            })
            .collect()
    };
    vec![
        (ValueKind::Text, Vec::new()),
        (
            ValueKind::Text,
            "naïve façade, ☃ and 𝄞\n".repeat(400).into_bytes(),
        ),
        (ValueKind::Varchar, b"it's \\ \"quoted\"".repeat(300)),
        (ValueKind::Json, br#"{ "a" : [1, 2,  3] }"#.repeat(1_000)),
        (ValueKind::Jsonb, br#"{"a": [1, 2, 3]}"#.repeat(1_000)),
        (ValueKind::Bytea, (0..=255).collect()),
        (ValueKind::Bytea, random(8_192)),
        (ValueKind::Bytea, random(1 << 20)),
    ]
}

/// Proves that values of every kind come back byte for byte, from the cache and without one, by
/// the resolver's own answer and by dblink.
#[tokio::test(flavor = "multi_thread")]
async fn every_kind_comes_back() {
    let cluster = Cluster::start().unwrap();
    let server = connect(&cluster.connection_string("postgres")).await;
    server
        .batch_execute("create extension dblink")
        .await
        .unwrap();
    for capacity in [0, 64 << 20] {
        let directory = tempfile::tempdir().unwrap();
        let store = open(&directory.path().join("store"));
        let mut references = Vec::new();
        for (kind, value) in values() {
            references.push((put(&store, kind, &value).await, value));
        }
        let cache = DetoastCache::new(capacity);
        let conninfo = serve(store, cache.clone()).await;
        let direct = connect(&conninfo).await;
        server
            .execute("select dblink_connect('r', $1)", &[&conninfo])
            .await
            .unwrap();
        // Twice: the second time from the cache, where there is one.
        for (reference, value) in references.iter().chain(&references) {
            let text = text_of(reference);
            assert!(
                resolve(&direct, &text).await.unwrap() == *value,
                "{reference:?}"
            );
            let sql = "select v from dblink('r', $1) as t(v bytea)";
            let row = server.query_one(sql, &[&query(&text)]).await.unwrap();
            assert!(row.get::<_, Vec<u8>>(0) == *value, "{reference:?}");
        }
        assert_eq!(cache.stats().hits > 0, capacity > 0);
        server
            .batch_execute("select dblink_disconnect('r')")
            .await
            .unwrap();
    }
}

/// Proves S5 at the resolver: what is no reference of this store is told apart from a reference
/// that fails, also when it comes from another store, is cut, or differs in one character.
#[tokio::test]
async fn ordinary_data_is_told_apart() {
    let directory = tempfile::tempdir().unwrap();
    let store = open(&directory.path().join("store"));
    let other = open(&directory.path().join("other"));
    let value = b"some value".repeat(100);
    let reference = text_of(&put(&store, ValueKind::Text, &value).await);
    let foreign = text_of(&put(&other, ValueKind::Text, &value).await);
    let client = connect(&serve(store, DetoastCache::new(1 << 20)).await).await;

    let mut texts = vec![
        foreign,
        String::new(),
        "toast:".to_owned(),
        format!("toast:{}", "A".repeat(56)),
        reference[..61].to_owned(),
        format!("{reference}A"),
        format!("\"{reference}\""),
    ];
    // The prefix is not in base64, and every character behind it is covered by the MAC.
    for at in 0..reference.len() {
        let other = if &reference[at..=at] == "A" { "B" } else { "A" };
        texts.push(format!(
            "{}{other}{}",
            &reference[..at],
            &reference[at + 1..]
        ));
    }
    for text in texts {
        let (sqlstate, _) = resolve(&client, &text).await.unwrap_err();
        assert_eq!(sqlstate, "TR001", "{text}");
    }
    assert_eq!(resolve(&client, &reference).await.unwrap(), value);
}

/// Proves S4 at the resolver: a damaged chunk is XX001 and names segment and offset, a lost
/// segment is an error as well, and other values still come.
#[tokio::test]
async fn damage_is_reported_and_never_data() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("store");
    let store = open(&path);
    let good_value = b"the first value ".repeat(200);
    let good = put(&store, ValueKind::Text, &good_value).await;
    let damaged = put(&store, ValueKind::Text, &b"the second value ".repeat(200)).await;
    let segment = path.join(format!("segments/{:08x}.seg", damaged.segment()));
    let mut bytes = std::fs::read(&segment).unwrap();
    // The payload follows a header of 80 bytes: docs/format/segment-v1.md.
    bytes[damaged.offset() as usize + 80] ^= 1;
    std::fs::write(&segment, &bytes).unwrap();

    let client = connect(&serve(store, DetoastCache::new(0)).await).await;
    let (sqlstate, message) = resolve(&client, &text_of(&damaged)).await.unwrap_err();
    assert_eq!(sqlstate, "XX001");
    let place = format!(
        "segment {:08x} at offset {}",
        damaged.segment(),
        damaged.offset()
    );
    assert!(message.contains(&place), "{message}");
    assert_eq!(resolve(&client, &text_of(&good)).await.unwrap(), good_value);
    // Asked again it fails again: an error is not cached as anything.
    assert!(resolve(&client, &text_of(&damaged)).await.is_err());
}

/// Proves that a value in a segment whose file is gone is an error that names the segment.
#[tokio::test]
async fn lost_segment_is_an_error() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("store");
    let store = open(&path);
    let lost = put(&store, ValueKind::Text, &b"a value ".repeat(200)).await;
    let mut kept = lost;
    for n in 0..20u64 {
        let value: Vec<u8> = (0..1 << 16)
            .flat_map(|m: u64| {
                (n << 32 | m)
                    .wrapping_mul(0x9e37_79b9_7f4a_7c15)
                    .to_be_bytes()
            })
            .collect();
        kept = put(&store, ValueKind::Bytea, &value).await;
    }
    assert_ne!(lost.segment(), kept.segment());
    store.close();
    std::fs::remove_file(path.join(format!("segments/{:08x}.seg", lost.segment()))).unwrap();

    let client = connect(&serve(open(&path), DetoastCache::new(0)).await).await;
    let (sqlstate, message) = resolve(&client, &text_of(&lost)).await.unwrap_err();
    assert_eq!(sqlstate, "XX001", "{message}");
    assert!(
        message.contains(&format!("{:08x}", lost.segment())),
        "{message}"
    );
    assert_eq!(
        resolve(&client, &text_of(&kept)).await.unwrap().len(),
        1 << 19
    );
}
