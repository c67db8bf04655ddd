//! A second process on the same store, and SIGTERM.

use std::time::{Duration, Instant};

use crate::common::fail;
use crate::model::{self, Ledger, Row};
use crate::random::Random;
use crate::rig::Rig;
use crate::segments::{self, Segment};
use crate::server::{signal, wait};
use crate::values::{Column, Value};

fn text_row(seed: u64, len: usize) -> (Row, String) {
    let value = Value::made(Column::Body, seed, len);
    let text = String::from_utf8(value.bytes.to_vec()).unwrap();
    let row = Row {
        txn: 0,
        values: [Some(value), None, None],
    };
    (row, text)
}

/// Segments that recovery had to cut.
fn cut(rig: &Rig) -> usize {
    let numbers = segments::numbers(&rig.store).into_iter();
    numbers
        .filter(|number| {
            let seal = Segment::read(&rig.store, *number).seal();
            seal.is_some_and(|seal| seal.recovered)
        })
        .count()
}

/// Proves: a second `serve` on a store in use is refused with a message that says why, and neither
/// the store nor the sessions of the first one notice.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn second_process_is_refused_under_load() {
    let rig = Rig::start("").await;
    let serving = rig.serve();
    let ledgers = (0..4).map(Ledger::new).collect();
    let load = rig.load(&serving, ledgers, 7).await;
    for _ in 0..3 {
        let said = fail(&["serve", "--config", rig.config.to_str().unwrap()], 1);
        let store = rig.store.display().to_string();
        assert!(
            said.contains(&store) && said.contains("another process has it open"),
            "{said}"
        );
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
    load.expect_end();
    assert_eq!(rig.metrics(&serving).error(), None);
    assert_eq!(serving.stop().code(), Some(0));
    let (mut ledgers, acknowledged) = load.end().await.unwrap();
    assert!(acknowledged > 10, "{acknowledged}");

    rig.sessions_ended().await;
    let serving = rig.serve();
    let table = model::read_table(&rig.through(&serving).await)
        .await
        .unwrap();
    model::settle(&mut ledgers, &table);
    assert_eq!(model::difference(&ledgers, &table), None);
    assert_eq!(cut(&rig), 0, "a clean stop leaves nothing torn");
    assert_eq!(serving.stop().code(), Some(0));
}

/// Proves: a transaction that is open at SIGTERM can go on to offload, read and commit; the process
/// ends with 0 as soon as it has; new sessions are refused meanwhile; the values are there at the
/// next start, and nothing was torn.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_open_transaction_finishes_after_sigterm() {
    let rig = Rig::start("[limits]\ndrain_timeout = \"20s\"\n").await;
    let mut serving = rig.serve();
    let mut through = rig.through(&serving).await;
    let rows = [text_row(1, 150_000), text_row(2, 90_000)];
    let insert = "insert into docs(id, txn, body) values ($1, 0, $2)";
    let transaction = through.transaction().await.unwrap();
    transaction
        .execute(insert, &[&1i64, &rows[0].1])
        .await
        .unwrap();
    signal(&serving.child, "TERM");
    tokio::time::sleep(Duration::from_millis(400)).await;
    assert!(serving.child.try_wait().unwrap().is_none());
    let late = format!(
        "host=127.0.0.1 port={} user=postgres",
        serving.proxy.rsplit_once(':').unwrap().1
    );
    assert!(
        tokio_postgres::connect(&late, tokio_postgres::NoTls)
            .await
            .is_err()
    );

    transaction
        .execute(insert, &[&2i64, &rows[1].1])
        .await
        .unwrap();
    let body = "select body from docs order by id";
    let seen = transaction.query(body, &[]).await.unwrap();
    for (row, (_, text)) in seen.iter().zip(&rows) {
        assert!(row.get::<_, &str>(0) == text);
    }
    transaction.commit().await.unwrap();
    drop(through);
    let began = Instant::now();
    assert_eq!(wait(&mut serving.child).code(), Some(0));
    assert!(began.elapsed() < Duration::from_secs(10));

    let serving = rig.serve();
    let table = model::read_table(&rig.through(&serving).await)
        .await
        .unwrap();
    let (references, inline) = segments::references(&model::read_table(&rig.direct).await.unwrap());
    assert_eq!((references.len(), inline), (2, 0));
    let mut ledger = Ledger::new(0);
    ledger.rows.extend((1..).zip(rows.map(|(row, _)| row)));
    assert_eq!(model::difference(&[ledger], &table), None);
    assert_eq!(cut(&rig), 0);
    assert_eq!(serving.stop().code(), Some(0));
}

/// Proves: a transaction that does not end is cut at the deadline, not before and not long after;
/// the process ends with 0, the transaction is rolled back, and the store is as after any clean
/// stop although other sessions were writing.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_deadline_cuts_what_does_not_finish() {
    let rig = Rig::start("[limits]\ndrain_timeout = \"1s\"\n").await;
    let mut serving = rig.serve();
    let mut through = rig.through(&serving).await;
    let transaction = through.transaction().await.unwrap();
    let (_, text) = text_row(Random::new(3, 3).next(), 100_000);
    transaction
        .execute(
            "insert into docs(id, txn, body) values (-1, 0, $1)",
            &[&text],
        )
        .await
        .unwrap();
    let load = rig
        .load(&serving, (0..2).map(Ledger::new).collect(), 9)
        .await;
    tokio::time::sleep(Duration::from_millis(300)).await;
    load.expect_end();
    let began = Instant::now();
    signal(&serving.child, "TERM");
    assert_eq!(wait(&mut serving.child).code(), Some(0));
    let took = began.elapsed();
    assert!(
        took > Duration::from_millis(900) && took < Duration::from_secs(10),
        "{took:?}"
    );
    let (mut ledgers, _) = load.end().await.unwrap();
    drop(transaction);

    rig.sessions_ended().await;
    let serving = rig.serve();
    let table = model::read_table(&rig.through(&serving).await)
        .await
        .unwrap();
    model::settle(&mut ledgers, &table);
    assert_eq!(model::difference(&ledgers, &table), None);
    assert_eq!(cut(&rig), 0);
    assert_eq!(serving.stop().code(), Some(0));
}
