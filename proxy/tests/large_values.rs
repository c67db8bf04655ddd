//! Values longer than a record of the store: they leave the row in pieces and come back whole.

mod common;

use common::{Rig, RigOptions};
use toastrack_offload::Codec;
use tokio_postgres::types::Json;

const MIB: usize = 1 << 20;

/// Text that does not repeat, so that each piece is its own.
fn text(len: usize, seed: u32) -> String {
    let mut text = String::with_capacity(len + 16);
    let mut state = seed | 1;
    while text.len() < len {
        state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        text.push_str(&format!("{state:x} ü "));
    }
    while text.len() > len {
        text.pop();
    }
    text
}

/// Proves: text, jsonb and bytea of one byte more than a record, and of many pieces, leave the row
/// as parameters and as literals; come back the same in text and in binary; the server itself sees
/// the same values; an update and an equal value work as ever.
#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn large_values_leave_the_row_and_come_back() {
    let rig = Rig::with(RigOptions::default()).await;
    let direct = rig.direct().await;
    direct
        .batch_execute(
            "create table large(id int primary key, t toastrack.text, j toastrack.jsonb, b toastrack.bytea)",
        )
        .await
        .expect("creates");
    let through = rig.through().await;
    let insert = through
        .prepare("insert into large values ($1, $2, $3, $4)")
        .await
        .expect("prepares");
    let lens = [MIB + 1, 2 * MIB, 3 * MIB + 12_345];
    for (id, len) in lens.into_iter().enumerate() {
        let id = id as i32;
        let value = text(len, id as u32);
        let json = Json(serde_json::json!({ "body": value }));
        through
            .execute(&insert, &[&id, &value, &json, &value.as_bytes()])
            .await
            .expect("inserts");
        let hex: String = value.bytes().map(|byte| format!("{byte:02x}")).collect();
        let literal = format!(
            "insert into large values ({}, '{value}', '{{\"body\": \"{value}\"}}', '\\x{hex}')",
            id + 100
        );
        through.batch_execute(&literal).await.expect("inserts");

        let rows = through
            .query("select t, j, b from large where id % 100 = $1", &[&id])
            .await
            .expect("reads");
        assert_eq!(rows.len(), 2);
        for row in &rows {
            assert!(row.get::<_, String>(0) == value);
            let json: Json<serde_json::Value> = row.get(1);
            assert!(json.0["body"] == *value);
            assert!(row.get::<_, Vec<u8>>(2) == value.as_bytes());
        }
        let messages = through
            .simple_query(&format!("select t from large where id = {id}"))
            .await
            .expect("reads as text");
        let found = messages.iter().any(|message| {
            matches!(message, tokio_postgres::SimpleQueryMessage::Row(row) if row.get(0) == Some(&value))
        });
        assert!(found);
        for client in [&direct, &through] {
            let row = client
                .query_one(
                    "select length(t), octet_length(t), md5(t::text), md5(b::bytea), length(j->>'body') \
                     from large where id = $1",
                    &[&id],
                )
                .await
                .expect("asks the server");
            let chars = value.chars().count() as i32;
            assert_eq!(row.get::<_, i32>(0), chars);
            assert_eq!(row.get::<_, i32>(1), value.len() as i32);
            assert_eq!(row.get::<_, String>(2), row.get::<_, String>(3));
            assert_eq!(row.get::<_, i32>(4), chars);
        }
    }
    let sizes = direct
        .query_one(
            "select max(pg_column_size(t)), max(pg_column_size(j)), max(pg_column_size(b)) from large",
            &[],
        )
        .await
        .expect("asks the sizes");
    for (column, most) in [66, 78, 54].into_iter().enumerate() {
        let size: i32 = sizes.get(column);
        assert!(
            size <= most,
            "column {column} takes {size} bytes in the row"
        );
    }
    let reference: String = direct
        .query_one("select toastrack.raw(t) from large where id = 2", &[])
        .await
        .expect("reads the reference")
        .get(0);
    let parsed = rig.store.parse_any_text(reference.as_bytes()).expect("one");
    assert_eq!(parsed.codec(), Codec::Manifest);

    let updated = format!("{} and more", text(3 * MIB + 12_345, 2));
    through
        .execute("update large set t = $1 where id = 2", &[&updated])
        .await
        .expect("updates");
    let read: String = through
        .query_one("select t from large where id = 2", &[])
        .await
        .expect("reads")
        .get(0);
    assert!(read == updated);
}
