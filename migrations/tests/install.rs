//! Install, uninstall and what is seen of a half install.

#![allow(clippy::unwrap_used, reason = "tests")]

mod common;

use common::{connect, connect_with, empty_database, failure, installed, one, rows};
use toastrack_migrations::{
    ColumnKind, DirectRead, Error, InstallState, ResolverAddress, ServerSettings, VERSION, catalog,
    install, refresh_settings, state, uninstall,
};

/// A database goes from nothing to installed, installing again changes nothing, and uninstall leaves nothing.
#[tokio::test(flavor = "multi_thread")]
async fn install_is_idempotent_and_uninstall_leaves_nothing() {
    let database = empty_database().await;
    let mut client = connect(&database).await;
    let count = "SELECT (SELECT count(*) FROM pg_type) || ' ' || (SELECT count(*) FROM pg_proc) || ' ' || \
                 (SELECT count(*) FROM pg_operator) || ' ' || (SELECT count(*) FROM pg_opfamily) || ' ' || \
                 (SELECT count(*) FROM pg_cast) || ' ' || (SELECT count(*) FROM pg_class)";
    let before = one(&client, count).await;
    assert_eq!(state(&client).await.unwrap(), InstallState::Absent);
    assert_eq!(catalog(&client).await.unwrap(), Default::default());

    let settings = ServerSettings::default();
    let report = install(&mut client, &settings).await.unwrap();
    assert_eq!(report.version_before, 0);
    assert_eq!(report.version, VERSION);
    assert_eq!(report.applied.len(), VERSION as usize);
    let whole = InstallState::Installed { version: VERSION };
    assert_eq!(state(&client).await.unwrap(), whole);
    let during = one(&client, count).await;

    let report = install(&mut client, &settings).await.unwrap();
    assert_eq!(report.version_before, VERSION);
    assert!(report.applied.is_empty() && report.repaired.is_empty());
    assert_eq!(one(&client, count).await, during);

    uninstall(&mut client).await.unwrap();
    assert_eq!(state(&client).await.unwrap(), InstallState::Absent);
    assert_eq!(one(&client, count).await, before);
    uninstall(&mut client).await.unwrap();
}

/// Two installs at once: both succeed, the second finds the work of the first.
#[tokio::test(flavor = "multi_thread")]
async fn two_installs_at_once_wait_for_each_other() {
    let database = empty_database().await;
    let (mut a, mut b) = (connect(&database).await, connect(&database).await);
    let settings = ServerSettings::default();
    let (first, second) = tokio::join!(install(&mut a, &settings), install(&mut b, &settings));
    let applied = first.unwrap().applied.len() + second.unwrap().applied.len();
    assert_eq!(applied, VERSION as usize);
}

/// Uninstall refuses while anything uses a type, and names it: columns, arrays, domains, composite types,
/// functions.
#[tokio::test(flavor = "multi_thread")]
async fn uninstall_refuses_and_lists_the_users() {
    let mut client = installed().await;
    client
        .batch_execute(
            "CREATE TABLE a (id int, body toastrack.text);
             CREATE TABLE b (id int, list toastrack.jsonb[]);
             CREATE DOMAIN note AS toastrack.text;
             CREATE TABLE c (n note);
             CREATE TYPE pair AS (x int, y toastrack.bytea);
             CREATE FUNCTION f(toastrack.json) RETURNS int LANGUAGE sql AS 'select 1'",
        )
        .await
        .unwrap();
    let Err(Error::InUse { users }) = uninstall(&mut client).await else {
        panic!("uninstall did not refuse");
    };
    for expected in [
        "column body of table public.a",
        "column list of table public.b",
        "type public.note",
        "column n of table public.c",
        "column y of composite type public.pair",
        "function public.f(toastrack.json)",
    ] {
        assert!(
            users.iter().any(|user| user.replace('"', "") == expected),
            "{expected} is not in {users:?}"
        );
    }
    assert!(state(&client).await.unwrap().is_ready());

    client
        .batch_execute("DROP TABLE a, b, c; DROP DOMAIN note; DROP TYPE pair; DROP FUNCTION f")
        .await
        .unwrap();
    // A view over nothing but the function: only the server knows of it.
    client
        .batch_execute("CREATE VIEW v AS SELECT toastrack.detoast('x'::toastrack.text)")
        .await
        .unwrap();
    assert!(uninstall(&mut client).await.is_err());
    assert!(state(&client).await.unwrap().is_ready());
    client.batch_execute("DROP VIEW v").await.unwrap();
    uninstall(&mut client).await.unwrap();
}

/// What a dump and restore loses is noticed, by name, and install makes it again.
#[tokio::test(flavor = "multi_thread")]
async fn missing_catalog_objects_are_noticed_and_repaired() {
    let mut client = installed().await;
    client
        .batch_execute(
            "DROP OPERATOR pg_catalog.|| (toastrack.jsonb, toastrack.jsonb);
             DROP FUNCTION pg_catalog.length(toastrack.text);
             DROP OPERATOR FAMILY toastrack.bytea_ops USING hash",
        )
        .await
        .unwrap();
    let InstallState::Incomplete { missing } = state(&client).await.unwrap() else {
        panic!("nothing was noticed");
    };
    assert_eq!(
        missing,
        [
            "function pg_catalog.length(toastrack.text)",
            "operator pg_catalog.||(toastrack.jsonb,toastrack.jsonb)",
            "operator class for toastrack.bytea using hash",
        ]
    );
    let report = install(&mut client, &ServerSettings::default())
        .await
        .unwrap();
    assert_eq!(report.repaired, missing);
    assert!(state(&client).await.unwrap().is_ready());
}

/// An install that stopped in the middle is seen, and goes on where it was.
#[tokio::test(flavor = "multi_thread")]
async fn an_interrupted_install_is_noticed_and_continued() {
    let mut client = installed().await;
    // As after the first three migrations: take the later ones back.
    for file in [
        "0007_large_values",
        "0006_operators",
        "0005_casts",
        "0004_detoast",
    ] {
        let path = format!("{}/sql/{file}.down.sql", env!("CARGO_MANIFEST_DIR"));
        client
            .batch_execute(&std::fs::read_to_string(path).unwrap())
            .await
            .unwrap();
    }
    client
        .batch_execute("DELETE FROM toastrack.migrations WHERE version > 3")
        .await
        .unwrap();
    let InstallState::Incomplete { missing } = state(&client).await.unwrap() else {
        panic!("nothing was noticed");
    };
    assert!(missing.iter().any(|item| item == "migration 0004_detoast"));
    let report = install(&mut client, &ServerSettings::default())
        .await
        .unwrap();
    assert_eq!(report.version_before, 3);
    assert_eq!(
        report.applied,
        [
            "0004_detoast",
            "0005_casts",
            "0006_operators",
            "0007_large_values"
        ]
    );
    assert!(state(&client).await.unwrap().is_ready());
}

/// The list that `state` checks is all of what install makes in pg_catalog.
#[tokio::test(flavor = "multi_thread")]
async fn state_knows_every_object_in_pg_catalog() {
    let mut client = installed().await;
    let made = rows(
        &client,
        "WITH types AS (SELECT oid, typarray FROM pg_type WHERE typnamespace = 'toastrack'::regnamespace)
         SELECT 'operator pg_catalog.' || o.oid::regoperator FROM pg_operator o
         WHERE o.oprnamespace = 11 AND (o.oprleft IN (SELECT oid FROM types) OR o.oprright IN (SELECT oid FROM types))
         UNION ALL
         SELECT 'function pg_catalog.' || p.oid::regprocedure FROM pg_proc p
         WHERE p.pronamespace = 11 AND p.proargtypes[0] IN (SELECT oid FROM types UNION ALL SELECT typarray FROM types)",
    )
    .await;
    let down = format!("{}/sql/0006_operators.down.sql", env!("CARGO_MANIFEST_DIR"));
    client
        .batch_execute(&std::fs::read_to_string(down).unwrap())
        .await
        .unwrap();
    let InstallState::Incomplete { missing } = state(&client).await.unwrap() else {
        panic!("nothing was noticed");
    };
    let listed = missing
        .iter()
        .filter(|item| item.contains(" pg_catalog."))
        .count();
    assert_eq!(listed, made.len(), "{missing:#?}\n{made:#?}");
    install(&mut client, &ServerSettings::default())
        .await
        .unwrap();
}

/// A string type that came after the install (citext) lacks its cast until install runs again; without it an
/// assignment would store the reference's text.
#[tokio::test(flavor = "multi_thread")]
async fn a_later_string_type_needs_its_cast() {
    let mut client = installed().await;
    client
        .batch_execute("CREATE EXTENSION citext")
        .await
        .unwrap();
    let InstallState::Incomplete { missing } = state(&client).await.unwrap() else {
        panic!("nothing was noticed");
    };
    assert!(
        missing.contains(&"cast (toastrack.text AS public.citext)".to_owned()),
        "{missing:?}"
    );
    install(&mut client, &ServerSettings::default())
        .await
        .unwrap();
    assert!(state(&client).await.unwrap().is_ready());
}

/// Who is no superuser is told so, before anything was changed.
#[tokio::test(flavor = "multi_thread")]
async fn install_needs_a_superuser() {
    let database = empty_database().await;
    let admin = connect(&database).await;
    admin
        .batch_execute("CREATE ROLE plain_role LOGIN")
        .await
        .unwrap();
    let conninfo = common::cluster()
        .connection_string(&database)
        .replace("user=postgres", "user=plain_role");
    let mut client = connect_with(&conninfo).await;
    let error = install(&mut client, &ServerSettings::default())
        .await
        .unwrap_err();
    assert!(matches!(&error, Error::NotSuperuser { role } if role == "plain_role"));
    assert_eq!(state(&client).await.unwrap(), InstallState::Absent);
}

/// A database in another encoding is refused.
#[tokio::test(flavor = "multi_thread")]
async fn install_needs_utf8() {
    let admin = connect("postgres").await;
    admin
        .batch_execute(
            "CREATE DATABASE latin ENCODING 'LATIN1' LC_COLLATE 'C' LC_CTYPE 'C' TEMPLATE template0",
        )
        .await
        .unwrap();
    let mut client = connect("latin").await;
    let error = install(&mut client, &ServerSettings::default())
        .await
        .unwrap_err();
    assert!(matches!(&error, Error::NotUtf8 { found } if found == "LATIN1"));
}

/// Any role may ask for state and catalog, and none but the owner sees the resolver's secret or the settings.
#[tokio::test(flavor = "multi_thread")]
async fn an_ordinary_role_sees_the_catalog_and_no_secret() {
    let database = empty_database().await;
    let mut admin = connect(&database).await;
    let settings = ServerSettings {
        store_directory: None,
        resolver: Some(ResolverAddress {
            host: "127.0.0.1".into(),
            port: 1,
            secret: "hush".into(),
        }),
    };
    install(&mut admin, &settings).await.unwrap();
    admin
        .batch_execute("CREATE TABLE docs (id int, body toastrack.text); CREATE ROLE reader LOGIN")
        .await
        .unwrap();
    let conninfo = common::cluster()
        .connection_string(&database)
        .replace("user=postgres", "user=reader");
    let reader = connect_with(&conninfo).await;
    assert!(state(&reader).await.unwrap().is_ready());
    assert_eq!(catalog(&reader).await.unwrap().tables.len(), 1);
    for table in ["resolver", "config"] {
        let error = failure(&reader, &format!("SELECT * FROM toastrack.{table}")).await;
        assert!(error.starts_with("42501"), "{error}");
    }
    for call in [
        "toastrack.value_from_segment('')",
        "toastrack.value_from_resolver('')",
        "toastrack.connect_to_resolver()",
        "toastrack.dblink_connect('a', 'b')",
        "toastrack.create_casts()",
    ] {
        let error = failure(&reader, &format!("SELECT {call}")).await;
        assert!(error.starts_with("42501"), "{call}: {error}");
    }
}

/// The settings are exactly what was given last; a directory that the server cannot read is not registered.
#[tokio::test(flavor = "multi_thread")]
async fn settings_are_what_was_given_last() {
    let mut client = installed().await;
    let registered = "SELECT COALESCE(toastrack.store_directory(), '-') || ' ' || \
                      (SELECT count(*) FROM toastrack.config) || ' ' || (SELECT count(*) FROM toastrack.resolver)";
    let directory = common::server_directory("it's a store");
    std::fs::create_dir(directory.join("segments")).unwrap();
    std::fs::write(directory.join("toastrack-store"), "x").unwrap();
    common::give_to_server(&directory);
    let path = directory.to_str().unwrap().to_owned();
    let mut settings = ServerSettings {
        store_directory: Some(path.clone()),
        resolver: Some(ResolverAddress {
            host: "/tmp".into(),
            port: 5,
            secret: "s".into(),
        }),
    };
    assert_eq!(
        refresh_settings(&mut client, &settings).await.unwrap(),
        DirectRead::Registered
    );
    assert_eq!(one(&client, registered).await, format!("{path} 1 1"));

    // Install with other things in mind leaves them.
    install(&mut client, &ServerSettings::default())
        .await
        .unwrap();
    assert_eq!(one(&client, registered).await, format!("{path} 1 1"));

    settings.store_directory = Some("/nowhere/at/all".into());
    assert!(matches!(
        refresh_settings(&mut client, &settings).await.unwrap(),
        DirectRead::Unreadable { .. }
    ));
    assert_eq!(one(&client, registered).await, "- 0 1");

    assert_eq!(
        refresh_settings(&mut client, &ServerSettings::default())
            .await
            .unwrap(),
        DirectRead::Off
    );
    assert_eq!(one(&client, registered).await, "- 0 0");
}

/// The catalog lists tables with offloaded columns, all their columns in order, and the array types.
#[tokio::test(flavor = "multi_thread")]
async fn catalog_lists_offloaded_tables() {
    let client = installed().await;
    client
        .batch_execute(
            "CREATE SCHEMA other;
             CREATE TABLE plain (id int, body text);
             CREATE TABLE docs (id int, gone int, body toastrack.text, name toastrack.varchar(40), list toastrack.text[],
                                n int GENERATED ALWAYS AS (id + 1) STORED);
             ALTER TABLE docs DROP COLUMN gone;
             CREATE TABLE other.\"Docs\" (k int, data toastrack.jsonb) PARTITION BY LIST (k);
             CREATE VIEW seen AS SELECT body FROM docs;
             INSERT INTO toastrack.column_settings (relation, attname, threshold_bytes) VALUES ('docs', 'body', 512)",
        )
        .await
        .unwrap();
    let found = catalog(&client).await.unwrap();
    assert_eq!(found.types.len(), 10);
    let jsonb = found
        .types
        .iter()
        .find(|one| one.kind == ColumnKind::Jsonb && one.is_array)
        .unwrap();
    assert_eq!(jsonb.plain_oid, 3807);
    assert_eq!(
        jsonb.oid.to_string(),
        one(&client, "SELECT 'toastrack.jsonb[]'::regtype::oid").await
    );
    let tables: Vec<(&str, &str)> = found
        .tables
        .iter()
        .map(|table| (table.schema.as_str(), table.name.as_str()))
        .collect();
    assert_eq!(tables, [("public", "docs"), ("other", "Docs")]);
    let columns: Vec<_> = found.tables[0]
        .columns
        .iter()
        .map(|c| {
            (
                c.name.as_str(),
                c.number,
                c.offloaded,
                c.type_modifier,
                c.threshold,
                c.is_generated,
            )
        })
        .collect();
    assert_eq!(
        columns,
        [
            ("id", 1, None, -1, None, false),
            ("body", 3, Some(ColumnKind::Text), -1, Some(512), false),
            ("name", 4, Some(ColumnKind::Varchar), 44, None, false),
            ("list", 5, None, -1, None, false),
            ("n", 6, None, -1, None, true),
        ]
    );
}
