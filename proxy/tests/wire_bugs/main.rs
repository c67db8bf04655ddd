//! What broke other wire proxies, and what people who run large values ran into.
//!
//! The numbers are those of the lists that these cases were collected in; what the differential
//! tests hold already is not repeated here.

#[path = "../common/mod.rs"]
mod common;

mod cases;
mod memory;
mod order;
mod schema;
mod start;

use std::sync::LazyLock;

use common::raw::{self, Message};
use common::{Rig, RigOptions};

/// One cluster and one proxy for all tests of this binary. Roles with passwords come over every
/// method.
static RIG: LazyLock<Rig> = LazyLock::new(|| {
    let methods = [
        ("by_scram", "scram-sha-256"),
        ("by_md5", "md5"),
        ("by_password", "password"),
        ("rejected", "reject"),
    ];
    let hba_lines = methods
        .iter()
        .flat_map(|(role, method)| {
            ["local all", "host all"].map(|start| {
                let address = if start.starts_with("host") {
                    "127.0.0.1/32"
                } else {
                    ""
                };
                format!("{start} {role} {address} {method}")
            })
        })
        .collect();
    let rig = Rig::shared(RigOptions {
        hba_lines,
        ..RigOptions::default()
    });
    rig.cluster
        .execute(
            "postgres",
            "create role by_scram login password 'secret'; create role by_password login password 'secret'; \
             create role rejected login; set password_encryption = md5; \
             create role by_md5 login password 'secret'",
        )
        .expect("roles");
    rig
});

/// A database with one table `docs(id, body, d, b)` of offloaded columns.
fn database(name: &str) -> String {
    let name = format!("wire_{name}");
    RIG.create_packed(&name);
    let mut session = RIG.raw_through(&name);
    let answer = session.query(
        "create table docs(id int primary key, body toastrack.text, d toastrack.jsonb, b toastrack.bytea)",
    );
    assert_eq!(raw::sqlstate(&answer), "none");
    name
}

/// A value over the threshold.
fn big() -> String {
    common::values::named("big")
}

/// Parse, Bind and Execute of a statement without parameters.
fn unnamed(sql: &str) -> Vec<u8> {
    [
        raw::parse("", sql, &[]),
        raw::bind("", "", &[], &[], &[]),
        raw::execute("", 0),
    ]
    .concat()
}

/// What a backend counts as other sessions of a database.
fn sessions(database: &str) -> i64 {
    let mut direct = RIG.raw_direct("postgres");
    let sql = format!(
        "select count(*) from pg_stat_activity where datname = '{database}' \
         and application_name <> 'toastrack control'"
    );
    let answer: Vec<Message> = direct.query(&sql);
    raw::first_text(&answer).parse().expect("a number")
}
