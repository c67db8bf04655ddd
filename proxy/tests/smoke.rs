//! Values leave the row and come back.

mod common;

use common::Rig;

/// Proves: over the threshold a value is a reference in the row, and itself for the client, in the
/// extended and in the simple protocol.
#[tokio::test(flavor = "multi_thread")]
async fn large_values_leave_the_row() {
    let rig = Rig::start().await;
    let direct = rig.direct().await;
    direct
        .batch_execute(
            "create table docs(id int primary key, body toastrack.text, data toastrack.jsonb)",
        )
        .await
        .expect("creates");
    let through = rig.through().await;
    let body = "x".repeat(5000);
    let data = serde_json::json!({"b": "y".repeat(5000), "a": 1});
    through
        .execute("insert into docs values ($1, $2, $3)", &[&1, &body, &data])
        .await
        .expect("inserts");
    through
        .batch_execute(&format!("insert into docs values (2, '{body}', '{data}')"))
        .await
        .expect("inserts");

    for row in direct
        .query("select body::toastrack.text from docs", &[])
        .await
        .expect("reads")
    {
        let raw: RawText = row.get(0);
        assert_eq!(raw.0.len(), 62, "{}", raw.0);
        assert!(raw.0.starts_with("toast:"));
    }
    for id in [1, 2] {
        let row = through
            .query_one("select body, data from docs where id = $1", &[&id])
            .await
            .expect("reads");
        assert_eq!(row.get::<_, String>(0), body);
        assert_eq!(row.get::<_, serde_json::Value>(1), data);
    }
    assert_eq!(
        rig.metrics
            .resolve_errors
            .load(std::sync::atomic::Ordering::Relaxed),
        0
    );
    rig.stop().await;
}

/// The reference as it stands, whatever the type is called.
struct RawText(String);

impl<'a> tokio_postgres::types::FromSql<'a> for RawText {
    fn from_sql(
        _: &tokio_postgres::types::Type,
        raw: &'a [u8],
    ) -> Result<Self, Box<dyn std::error::Error + Sync + Send>> {
        Ok(RawText(String::from_utf8(raw.to_vec())?))
    }

    fn accepts(_: &tokio_postgres::types::Type) -> bool {
        true
    }
}
