//! The Postgres that is asked.

use std::sync::OnceLock;

use rand::SeedableRng;
use rand::rngs::StdRng;
use toastrack_testkit::Cluster;
use tokio_postgres::{Client, NoTls};

/// Functions that try a conversion and tell the outcome instead of failing.
const FUNCTIONS: &str = r#"
create or replace function try_jsonb(input bytea, out value text, out error text) as $$
begin
    value := convert_from(input, 'UTF8')::jsonb::text;
exception when others then
    error := sqlstate;
end $$ language plpgsql;
create or replace function try_json(input bytea, out value text, out error text) as $$
begin
    value := convert_from(input, 'UTF8')::json::text;
exception when others then
    error := sqlstate;
end $$ language plpgsql;
create or replace function try_bytea(input bytea, out value bytea, out error text) as $$
begin
    value := convert_from(input, 'UTF8')::bytea;
exception when others then
    error := sqlstate;
end $$ language plpgsql;
create or replace function try_array(input text, out value text[], out error text) as $$
begin
    value := array(select unnest(input::text[]));
exception when others then
    error := sqlstate;
end $$ language plpgsql;
create or replace function try_expression(input text, out value text[], out error text) as $$
begin
    execute 'select ' || input into value;
exception when others then
    error := sqlstate;
end $$ language plpgsql;
create or replace function try_latin1(input text, out value bytea, out error text) as $$
begin
    value := convert_to(input, 'LATIN1');
exception when others then
    error := sqlerrm;
end $$ language plpgsql;
"#;

/// Runs `test` with a connection of its own and a seeded generator.
pub(crate) fn ask<F: AsyncFnOnce(Client, StdRng)>(test: F) {
    static CLUSTER: OnceLock<Cluster> = OnceLock::new();
    let cluster = CLUSTER.get_or_init(|| {
        let cluster = Cluster::start().expect("a private cluster");
        cluster
            .execute("postgres", FUNCTIONS)
            .expect("the functions");
        cluster
    });
    let seed = std::env::var("TOASTRACK_TEST_SEED")
        .ok()
        .and_then(|seed| seed.parse().ok())
        .unwrap_or(1);
    println!("TOASTRACK_TEST_SEED={seed}");
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .expect("a runtime");
    runtime.block_on(async {
        let (client, connection) =
            tokio_postgres::connect(&cluster.connection_string("postgres"), NoTls)
                .await
                .expect("a connection");
        let driver = tokio::spawn(connection);
        test(client, StdRng::seed_from_u64(seed)).await;
        driver.abort();
    });
}
