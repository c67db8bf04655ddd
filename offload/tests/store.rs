//! The store's public behaviour, one promise a test.

#![allow(clippy::unwrap_used, reason = "helpers of tests")]

mod common;

use std::os::unix::fs::{MetadataExt, PermissionsExt};

use common::{document, noise, put, segment_path, small, small_raw};
use toastrack_offload::{
    Codec, Compression, Kind, MAX_RECORD_LEN, Reference, Store, StoreOptions, StoreState,
    ValueKind, begins_like_reference,
};

const KINDS: [ValueKind; 5] = [
    ValueKind::Text,
    ValueKind::Varchar,
    ValueKind::Json,
    ValueKind::Jsonb,
    ValueKind::Bytea,
];

/// Proves: a value of every kind comes back through the spelling that stands in the row, before and
/// after the store was closed, with all fields as they were put.
#[tokio::test]
async fn values_come_back_through_their_spelling() {
    let dir = tempfile::tempdir().unwrap();
    let store = Store::open(small(dir.path())).unwrap();
    let mut rows = Vec::new();
    for (n, kind) in KINDS.into_iter().enumerate() {
        let value = document(3000 + n, n as u64);
        let stored = store.put(kind, 2000, &value).unwrap();
        store.durable(stored.ticket).await.unwrap();
        assert!(store.is_durable(stored.ticket));
        let spelling = stored.reference.spelling();
        assert!(spelling.len() <= 64);
        assert!(begins_like_reference(kind, &spelling));
        rows.push((kind, spelling, value));
    }
    check(&store, &rows).await;
    store.close();
    let store = Store::open(small(dir.path())).unwrap();
    check(&store, &rows).await;

    async fn check(store: &Store, rows: &[(ValueKind, toastrack_offload::Spelling, Vec<u8>)]) {
        for (kind, spelling, value) in rows {
            let reference = store.parse(*kind, spelling).unwrap();
            assert_eq!(reference.kind(), *kind);
            assert_eq!(reference.codec(), Codec::Lz4);
            assert_eq!(reference.char_len(), 2000);
            assert_eq!(reference.logical_len() as usize, value.len());
            assert!(reference.stored_len() < reference.logical_len());
            assert_eq!(store.get(&reference).await.unwrap(), value);
            let text = reference.to_text();
            assert_eq!(store.parse_any_text(&text), Some(reference));
        }
    }
}

/// Proves: lengths from 0 to the limit are stored; one more is refused as a bad request, and so is
/// a character count that cannot be.
#[tokio::test]
async fn lengths_up_to_the_limit() {
    let dir = tempfile::tempdir().unwrap();
    let options = StoreOptions {
        segment_len_bytes: 4 << 20,
        ..small(dir.path())
    };
    let store = Store::open(options).unwrap();
    for len in [
        0,
        1,
        7,
        8,
        9,
        63,
        64,
        2047,
        2048,
        65_536,
        MAX_RECORD_LEN - 1,
        MAX_RECORD_LEN,
    ] {
        for value in [noise(len, len as u64), document(len, len as u64)] {
            let stored = put(&store, &value).await;
            assert_eq!(store.get(&stored.reference).await.unwrap(), value, "{len}");
        }
    }
    let refused = store.put(ValueKind::Text, 3, b"ab").unwrap_err();
    assert_eq!(refused.kind(), Kind::BadRequest);
}

/// Proves: values longer than a record come back, at once, from the batch that is being filled, and
/// after a reopen; their reference says what they are; equal pieces are stored once.
#[tokio::test]
async fn long_values_are_stored_in_pieces() {
    let dir = tempfile::tempdir().unwrap();
    let options = StoreOptions {
        segment_len_bytes: 16 << 20,
        ..small_raw(dir.path())
    };
    let store = Store::open(options.clone()).unwrap();
    let mut kept = Vec::new();
    for len in [
        MAX_RECORD_LEN + 1,
        2 * MAX_RECORD_LEN,
        2 * MAX_RECORD_LEN + 1,
        5 * MAX_RECORD_LEN - 1,
    ] {
        for value in [noise(len, len as u64), document(len, len as u64)] {
            let stored = loop {
                match store.put(ValueKind::Text, 77, &value) {
                    Err(error) if error.kind() == Kind::Retry => store.room().await.unwrap(),
                    other => break other.unwrap(),
                }
            };
            let reference = stored.reference;
            assert_eq!(reference.codec(), Codec::Manifest);
            assert_eq!(reference.kind(), ValueKind::Text);
            assert_eq!(reference.logical_len() as usize, len);
            assert_eq!(reference.char_len(), 77);
            assert!(reference.stored_len() < 1000);
            assert!(store.get_now(&reference).unwrap().is_none());
            assert_eq!(store.get(&reference).await.unwrap(), value);
            store.durable(stored.ticket).await.unwrap();
            kept.push((reference, value));
        }
    }
    let before = store.stats().stored_bytes;
    let (_, value) = kept[4].clone();
    let mut appended = value[..2 * MAX_RECORD_LEN].to_vec();
    appended.extend_from_slice(b"a hundred bytes more");
    let stored = put(&store, &appended).await;
    assert!(store.stats().stored_bytes - before < 1000);
    kept.push((stored.reference, appended));
    let again = store.put(ValueKind::Text, 77, &value).unwrap();
    assert!(again.deduplicated);
    assert_eq!(again.reference, kept[4].0);
    store.close();

    let store = Store::open(options).unwrap();
    let references: Vec<Reference> = kept.iter().map(|(reference, _)| *reference).collect();
    let read = store.get_many(&references).await;
    for (read, (_, value)) in read.into_iter().zip(&kept) {
        assert_eq!(read.unwrap(), value);
    }
}

/// Proves: damage in any piece, and in the manifest, is an error that names the place.
#[tokio::test]
async fn damage_in_a_piece_is_found() {
    let dir = tempfile::tempdir().unwrap();
    let options = StoreOptions {
        segment_len_bytes: 16 << 20,
        ..small_raw(dir.path())
    };
    let store = Store::open(options).unwrap();
    let value = noise(3 * MAX_RECORD_LEN, 5);
    let stored = put(&store, &value).await.reference;
    let path = segment_path(dir.path(), stored.segment());
    let whole = std::fs::read(&path).unwrap();
    let payload = stored.offset() as usize + 80;
    let piece = |n: usize| 4096 + n * (MAX_RECORD_LEN + 80) + 100;
    for at in [piece(0), piece(1), piece(2), payload, payload + 41] {
        let mut damaged = whole.clone();
        damaged[at] ^= 0x10;
        std::fs::write(&path, &damaged).unwrap();
        let refused = store.get(&stored).await.unwrap_err();
        assert_eq!(refused.kind(), Kind::Corrupt, "{at}");
        assert!(refused.to_string().contains("00000001"), "{refused}");
    }
    std::fs::write(&path, &whole).unwrap();
    assert_eq!(store.get(&stored).await.unwrap(), value);
}

/// Proves: a value that does not fit a segment is a bad request, not a wait for ever.
#[tokio::test]
async fn a_value_longer_than_a_segment_is_refused() {
    let dir = tempfile::tempdir().unwrap();
    let store = Store::open(small(dir.path())).unwrap();
    let value = noise(70_000, 1);
    let refused = store.put(ValueKind::Bytea, 70_000, &value).unwrap_err();
    assert_eq!(refused.kind(), Kind::BadRequest);
}

/// Proves: the same value of the same kind is stored once, while pending and when durable; another
/// kind or character count is stored again; after reopening too.
#[tokio::test]
async fn equal_values_are_stored_once() {
    let dir = tempfile::tempdir().unwrap();
    let store = Store::open(small(dir.path())).unwrap();
    let value = document(4000, 1);
    let first = store.put(ValueKind::Text, 4000, &value).unwrap();
    let pending = store.put(ValueKind::Text, 4000, &value).unwrap();
    assert!(!first.deduplicated && pending.deduplicated);
    assert_eq!(first.reference, pending.reference);
    assert!(pending.ticket >= first.ticket);
    store.durable(pending.ticket).await.unwrap();
    let durable = store.put(ValueKind::Text, 4000, &value).unwrap();
    assert_eq!(durable.reference, first.reference);
    store.durable(durable.ticket).await.unwrap();
    assert!(
        !store
            .put(ValueKind::Varchar, 4000, &value)
            .unwrap()
            .deduplicated
    );
    assert!(
        !store
            .put(ValueKind::Text, 3999, &value)
            .unwrap()
            .deduplicated
    );
    let stats = store.stats();
    assert_eq!(
        (stats.values_put, stats.dedup_hits, stats.dedup_bytes),
        (5, 2, 8000)
    );
    assert_eq!(stats.logical_bytes, 5 * 4000);
}

/// Proves: a hint whose record was damaged on disk is not shared.
#[tokio::test]
async fn a_damaged_header_is_not_shared() {
    let dir = tempfile::tempdir().unwrap();
    let store = Store::open(small_raw(dir.path())).unwrap();
    let value = noise(3000, 1);
    let first = put(&store, &value).await;
    let file = std::fs::OpenOptions::new()
        .write(true)
        .open(segment_path(dir.path(), first.reference.segment()))
        .unwrap();
    let at = u64::from(first.reference.offset()) + 30;
    std::os::unix::fs::FileExt::write_all_at(&file, &[0xFF; 4], at).unwrap();
    let second = put(&store, &value).await;
    assert!(!second.deduplicated);
    assert_ne!(second.reference, first.reference);
    assert_eq!(store.get(&second.reference).await.unwrap(), value);
    assert_eq!(
        store.get(&first.reference).await.unwrap_err().kind(),
        Kind::Corrupt
    );
}

/// Proves: payloads are kept compressed only where it saves the set share.
#[tokio::test]
async fn compression_is_kept_only_where_it_pays() {
    let dir = tempfile::tempdir().unwrap();
    let store = Store::open(small(dir.path())).unwrap();
    let hex: Vec<u8> = noise(4000, 1)
        .iter()
        .flat_map(|byte| format!("{byte:02x}").into_bytes())
        .collect();
    assert_eq!(put(&store, &hex).await.reference.codec(), Codec::Raw);
    assert_eq!(
        put(&store, &noise(8000, 2)).await.reference.codec(),
        Codec::Raw
    );
    let twice = noise(4000, 3).repeat(2);
    let stored = put(&store, &twice).await.reference;
    assert_eq!(stored.codec(), Codec::Lz4);
    assert!(stored.stored_len() < 4100);
    assert_eq!(store.get(&stored).await.unwrap(), twice);
    let stats = store.stats();
    assert_eq!(stats.values_compressed, 1);
    assert_eq!(stats.compression_in_bytes, 8000);
}

/// Proves: with `server_digest`, what SQL will read has the layout of the format page, and SHA-256
/// of the payload.
#[tokio::test]
async fn the_record_is_what_sql_reads() {
    use sha2::Digest;
    let dir = tempfile::tempdir().unwrap();
    let options = StoreOptions {
        server_digest: true,
        ..small_raw(dir.path())
    };
    let store = Store::open(options).unwrap();
    put(&store, b"before").await;
    let value = document(5000, 1);
    let stored = store.put(ValueKind::Jsonb, 4321, &value).unwrap();
    store.durable(stored.ticket).await.unwrap();
    let r = stored.reference;
    let file = std::fs::read(segment_path(dir.path(), r.segment())).unwrap();
    let record = &file[r.offset() as usize..][..80 + r.stored_len() as usize];
    assert_eq!(record[..4], *b"TRC1");
    assert_eq!(record[8..12], r.stored_len().to_le_bytes());
    assert_eq!(record[12..16], 5000u32.to_le_bytes());
    assert_eq!(record[16..20], 4321u32.to_le_bytes());
    assert_eq!(record[20..24], [1, 4, 0, 1]);
    assert_eq!(record[24..40], r.identity().0);
    assert_eq!(record[40..44], r.segment().to_le_bytes());
    assert_eq!(record[44..48], r.offset().to_le_bytes());
    assert_eq!(record[48..80], sha2::Sha256::digest(&value)[..]);
    assert_eq!(record[80..], value);
}

/// Proves: bytes put in a record's place by somebody who can write segments but has no key are
/// refused, although header, checksum and digest are right.
#[tokio::test]
async fn a_forged_payload_is_refused() {
    let dir = tempfile::tempdir().unwrap();
    let store = Store::open(small_raw(dir.path())).unwrap();
    let reference = put(&store, &noise(500, 1)).await.reference;
    store.close();
    let path = segment_path(dir.path(), reference.segment());
    let mut file = std::fs::read(&path).unwrap();
    let store_id: [u8; 16] = file[16..32].try_into().unwrap();
    let record = &mut file[reference.offset() as usize..][..580];
    record[80..].copy_from_slice(&noise(500, 2));
    let crc = crc32c::crc32c_append(crc32c::crc32c(&store_id), &record[8..]);
    record[4..8].copy_from_slice(&crc.to_le_bytes());
    std::fs::write(&path, file).unwrap();
    let store = Store::open(small_raw(dir.path())).unwrap();
    let error = store.get(&reference).await.unwrap_err();
    assert_eq!(error.kind(), Kind::Corrupt);
    assert!(error.to_string().contains("another identity"), "{error}");
}

/// Proves: a value can be read before it is durable, and over many segments in one call, in order,
/// with repeats.
#[tokio::test]
async fn many_are_read_in_order() {
    let dir = tempfile::tempdir().unwrap();
    let store = Store::open(small(dir.path())).unwrap();
    let pending = store.put(ValueKind::Bytea, 100, &noise(100, 999)).unwrap();
    assert_eq!(
        store.get(&pending.reference).await.unwrap(),
        noise(100, 999)
    );
    let mut references = Vec::new();
    let mut values = Vec::new();
    for n in 0..200 {
        let len = 100 + (n as usize * 37) % 9000;
        let value = if n % 2 == 0 {
            noise(len, n)
        } else {
            document(len, n)
        };
        references.push(put(&store, &value).await.reference);
        values.push(value);
    }
    assert!(store.stats().segments > 5, "{:?}", store.stats());
    let shuffled: Vec<usize> = (0..600).map(|n| n * 89 % 200).collect();
    let asked: Vec<Reference> = shuffled.iter().map(|n| references[*n]).collect();
    let got = store.get_many(&asked).await;
    assert_eq!(got.len(), asked.len());
    for (n, value) in shuffled.iter().zip(got) {
        assert_eq!(value.unwrap(), values[*n]);
    }
    assert!(store.get_many(&[]).await.is_empty());
}

/// Proves: a directory has one writer; it is free again after `close`, while other clones read on.
#[tokio::test]
async fn one_writer_a_directory() {
    let dir = tempfile::tempdir().unwrap();
    let store = Store::open(small(dir.path())).unwrap();
    let stored = put(&store, b"value").await;
    let refused = Store::open(small(dir.path())).unwrap_err();
    assert_eq!(refused.kind(), Kind::BadConfig);
    assert!(refused.to_string().contains("another process"), "{refused}");
    let reader = store.clone();
    store.close();
    let second = Store::open(small(dir.path())).unwrap();
    assert_eq!(reader.get(&stored.reference).await.unwrap(), "value");
    let refused = reader.put(ValueKind::Text, 1, b"x").unwrap_err();
    assert_eq!(refused.kind(), Kind::ReadOnly);
    assert_eq!(second.get(&stored.reference).await.unwrap(), "value");
}

/// Proves: everything put before `close` or the last drop is durable after it.
#[tokio::test]
async fn closing_writes_what_is_pending() {
    let dir = tempfile::tempdir().unwrap();
    let mut references = Vec::new();
    for round in 0..10u64 {
        let store = Store::open(small(dir.path())).unwrap();
        for n in 0..5 {
            let value = noise(1000, round * 10 + n);
            let stored = store.put(ValueKind::Bytea, 1000, &value).unwrap();
            references.push((stored.reference, value));
        }
        if round % 2 == 0 {
            store.close()
        } else {
            drop(store)
        }
    }
    let store = Store::open(small(dir.path())).unwrap();
    for (reference, value) in references {
        assert_eq!(store.get(&reference).await.unwrap(), value);
    }
    // Writing went on in one segment as long as there was room: 50 kB and 50 headers in 60 kB.
    assert!(store.stats().segments <= 2, "{:?}", store.stats());
}

/// Proves: modes do not depend on the umask, the key is the owner's alone, and with a server group
/// the group may read segments; also when the group is set later.
#[tokio::test]
async fn modes_and_groups() {
    let dir = tempfile::tempdir().unwrap();
    let root = dir.path().join("store");
    let mode = |name: &str| {
        let meta = std::fs::metadata(root.join(name)).unwrap();
        (meta.permissions().mode() & 0o7777, meta.gid())
    };
    let store = Store::open(small(&root)).unwrap();
    put(&store, b"value").await;
    drop(store);
    let own = std::fs::metadata(dir.path()).unwrap().gid();
    assert_eq!(mode(""), (0o700, own));
    assert_eq!(mode("key"), (0o600, own));
    assert_eq!(mode("segments"), (0o700, own));
    assert_eq!(mode("segments/00000001.seg"), (0o600, own));
    if !rustix::process::geteuid().is_root() {
        return;
    }
    let options = StoreOptions {
        server_gid: Some(54_321),
        ..small(&root)
    };
    let store = Store::open(options).unwrap();
    for n in 0..100 {
        put(&store, &noise(2000, n)).await;
    }
    assert_eq!(mode(""), (0o750, 54_321));
    assert_eq!(mode("key"), (0o600, own));
    assert_eq!(mode("toastrack-store"), (0o640, 54_321));
    assert_eq!(mode("segments"), (0o750, 54_321));
    assert_eq!(mode("segments/00000001.seg"), (0o640, 54_321));
    assert_eq!(mode("segments/00000002.seg"), (0o640, 54_321));
}

/// Proves: what is not this store is refused as bad configuration, and left as it was.
#[tokio::test]
async fn wrong_directories_are_refused() {
    let bad = |dir: &std::path::Path, says: &str| {
        let refused = Store::open(small(dir)).unwrap_err();
        assert_eq!(refused.kind(), Kind::BadConfig, "{refused}");
        assert!(refused.to_string().contains(says), "{refused}");
    };
    let foreign = tempfile::tempdir().unwrap();
    std::fs::set_permissions(foreign.path(), PermissionsExt::from_mode(0o755)).unwrap();
    std::fs::write(foreign.path().join("notes.txt"), "mine").unwrap();
    bad(foreign.path(), "notes.txt");
    let mode = std::fs::metadata(foreign.path())
        .unwrap()
        .permissions()
        .mode();
    assert_eq!(mode & 0o777, 0o755);
    assert_eq!(std::fs::read_dir(foreign.path()).unwrap().count(), 1);

    let dir = tempfile::tempdir().unwrap();
    Store::open(small(dir.path())).unwrap().close();
    let key = std::fs::read(dir.path().join("key")).unwrap();
    std::fs::write(dir.path().join("key"), [1u8; 32]).unwrap();
    bad(dir.path(), "another store");
    std::fs::write(dir.path().join("key"), [1u8; 31]).unwrap();
    bad(dir.path(), "32 bytes");
    std::fs::remove_file(dir.path().join("key")).unwrap();
    bad(dir.path(), "key file");
    std::fs::write(dir.path().join("key"), &key).unwrap();
    Store::open(small(dir.path())).unwrap().close();

    let superblock = dir.path().join("toastrack-store");
    let text = std::fs::read_to_string(&superblock).unwrap();
    std::fs::write(&superblock, text.replace("format 1", "format 2")).unwrap();
    bad(dir.path(), "format 2");
    std::fs::write(&superblock, "something else").unwrap();
    bad(dir.path(), "superblock");
    std::fs::remove_file(&superblock).unwrap();
    bad(dir.path(), "segments but no superblock");
}

/// Proves: options out of range are refused with the number.
#[test]
fn options_are_checked() {
    let dir = tempfile::tempdir().unwrap();
    let base = || small(dir.path());
    let cases = [
        StoreOptions {
            segment_len_bytes: 65_535,
            ..base()
        },
        StoreOptions {
            segment_len_bytes: (64 << 10) + 8,
            ..base()
        },
        StoreOptions {
            segment_len_bytes: (4 << 30) + 4096,
            ..base()
        },
        StoreOptions {
            compression: Compression::Lz4 { min_saving: 1.0 },
            ..base()
        },
        StoreOptions {
            compression: Compression::Lz4 {
                min_saving: f32::NAN,
            },
            ..base()
        },
        StoreOptions {
            max_pending_bytes: 1000,
            ..base()
        },
        StoreOptions {
            max_reads_in_flight: 0,
            ..base()
        },
    ];
    for options in cases {
        let refused = Store::open(options.clone()).unwrap_err();
        assert_eq!(refused.kind(), Kind::BadConfig, "{options:?}");
    }
}

/// Proves: many tasks that put and wait share syncs, lose nothing, and the store ends healthy.
#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn many_sessions_share_syncs() {
    let dir = tempfile::tempdir().unwrap();
    let options = StoreOptions {
        segment_len_bytes: 4 << 20,
        ..small(dir.path())
    };
    let store = Store::open(options).unwrap();
    let tasks: Vec<_> = (0..32u64)
        .map(|task| {
            let store = store.clone();
            tokio::spawn(async move {
                let mut mine = Vec::new();
                for n in 0..50 {
                    let value = noise(4000, task * 1000 + n);
                    mine.push((put(&store, &value).await.reference, value));
                }
                mine
            })
        })
        .collect();
    for task in tasks {
        for (reference, value) in task.await.unwrap() {
            assert_eq!(store.get(&reference).await.unwrap(), value);
        }
    }
    let stats = store.stats();
    assert_eq!(stats.values_put, 1600);
    assert!(stats.syncs < 1600 / 2, "{stats:?}");
    assert_eq!(store.state(), StoreState::Healthy);
}
