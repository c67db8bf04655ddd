//! psql, as people use it: the same script direct on plain columns and through the proxy on
//! offloaded ones prints the same.

mod common;

use std::io::Write;
use std::process::{Command, Stdio};
use std::sync::atomic::Ordering;

use common::Rig;

const PLAIN: &str = "create table docs(id int primary key, body text, name varchar(40), \
                     note json, data jsonb, raw bytea)";
const OFFLOADED: &str = "create table docs(id int primary key, body toastrack.text, \
                         name toastrack.varchar(40), note toastrack.json, data toastrack.jsonb, \
                         raw toastrack.bytea)";

/// Statements, meta-commands, variables, \copy both ways, cursors (FETCH_COUNT), errors with their
/// positions, and output in several forms.
const SCRIPT: &str = r#"
\set big `printf 'x%.0s' $(seq 1 5000)`
insert into docs values (1, :'big', 'ab', '{"b": 1, "a":  2}', '{"b": 1, "a":  2}', '\x00ff');
insert into docs values (2, 'it''s ' || :'big', null, json_build_object('k', :'big'),
  jsonb_build_object('k', :'big'), convert_to(:'big', 'UTF8'));
insert into docs(id, body, data, raw) values
  (3, :'big', ('{"long": "' || :'big' || '"}')::jsonb, decode(repeat('00ff', 3000), 'hex')),
  (4, E'tab\there\\', '[1,  2.50, 1e3]', '') returning id, length(body), body, data;
select * from docs order by id;
\x
select * from docs where id = 2;
\x
\pset format csv
select id, body, data from docs order by id;
\pset format html
select id, data from docs where id = 4;
\pset format unaligned
update docs set body = :'big' || id, data = data || '{"z": true}' where id in (1, 2) returning *;
select id, md5(body), octet_length(body), data->>'z', substr(body, 4990), raw = raw from docs order by 1;
begin;
declare c cursor for select body, note from docs order by id;
fetch 2 from c;
fetch all from c;
commit;
\set FETCH_COUNT 1
select id, body from docs order by id;
\set FETCH_COUNT 0
\copy docs to stdout
\copy (select id, body, data from docs order by id) to stdout with (format csv, header)
copy (select note from docs where id = 2) to stdout;
\copy docs(id, body) from stdin
10	copied\tin
\.
select id, body from docs where id = 10;
begin;
select body from docs where id = 1; select nope from docs;
select 1;
rollback;
insert into docs values (1, :'big');
insert into docs(id, name) values (11, :'big');
insert into docs(id, data) values (12, '{"broken": ' || :'big');
select 'before' as a, 'err' || from docs;
prepare p(int) as select id, body from docs where id = $1;
execute p(1);
execute p(3);
deallocate p;
select array_agg(body order by id) from docs where id in (1, 3);
select id, body from docs where id = 1 \gset
\echo :body
select body from docs where body like 'it%' union all select body from docs where id = 3;
delete from docs where id = 3 returning body;
select count(*), count(distinct body) from docs;
"#;

/// Proves: what psql prints is the same to the byte, errors and their positions included, and the
/// values were in fact offloaded.
#[tokio::test(flavor = "multi_thread")]
async fn psql_prints_the_same() {
    let rig = Rig::start().await;
    rig.cluster.create_database("plain").expect("a database");
    rig.cluster.execute("plain", PLAIN).expect("creates");
    rig.cluster.execute("postgres", OFFLOADED).expect("creates");
    let direct = run_psql(rig.cluster.port(), "plain");
    let through = run_psql(rig.port, "postgres");
    // docs/semantics.md: error texts name the type, and the length of a varchar is checked by a
    // function of ours.
    let through: String = through
        .lines()
        .filter(|line| !line.starts_with("CONTEXT:  SQL function \"fit_varchar\""))
        .map(|line| match line.strip_prefix("ERROR:") {
            Some(error) => format!("ERROR:{}\n", error.replace("toastrack.", "")),
            None => format!("{line}\n"),
        })
        .collect();
    for (direct, through) in direct.lines().zip(through.lines()) {
        assert_eq!(direct, through);
    }
    assert_eq!(direct.lines().count(), through.lines().count());
    assert!(
        direct.contains("duplicate key value"),
        "the script ran to its errors"
    );
    let offloaded = rig.metrics.columns().into_iter();
    let offloaded = offloaded.map(|(_, column)| column.values_offloaded.load(Ordering::Relaxed));
    assert!(offloaded.sum::<u64>() >= 3, "values stayed in their rows");
    rig.stop().await;
}

/// Output and errors in one, as a terminal shows them.
fn run_psql(port: u16, database: &str) -> String {
    let mut psql = Command::new("sh")
        .args([
            "-c",
            "exec psql -X -v ON_ERROR_STOP=0 -h 127.0.0.1 -U postgres 2>&1",
        ])
        .env("PGPORT", port.to_string())
        .env("PGDATABASE", database)
        .env("PGOPTIONS", "-c lc_messages=C")
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .expect("psql starts");
    let mut input = psql.stdin.take().expect("piped");
    let writer = std::thread::spawn(move || input.write_all(SCRIPT.as_bytes()));
    let output = psql.wait_with_output().expect("psql ends");
    writer
        .join()
        .expect("writes")
        .expect("psql reads its script");
    String::from_utf8(output.stdout).expect("psql prints UTF-8")
}
