//! Holds docs/metrics.md and openapi.json to what the program does, both ways.

#![expect(clippy::unwrap_used, reason = "a failed step fails the test")]

use std::collections::{BTreeMap, BTreeSet};

use serde_json::{Value, json};
use toastrack_admin::{
    Check, ColumnStats, METRICS, OPENAPI_JSON, ROUTES, Readiness, Stats, StoreSection, encode,
};

/// A document in which every optional field and every list has something.
fn full_stats() -> Stats {
    Stats {
        version: "0.1.0".into(),
        store: StoreSection {
            state_reason: Some("disk full".into()),
            ..StoreSection::default()
        },
        proxy: toastrack_admin::ProxySection {
            values_left_inline: BTreeMap::from([("too_small".into(), 3)]),
            ..Default::default()
        },
        columns: vec![ColumnStats::default()],
        ..Stats::default()
    }
}

fn full_readiness() -> Readiness {
    Readiness::from_checks(vec![Check {
        name: "store".into(),
        ok: true,
        detail: "healthy".into(),
    }])
}

/// Proves that docs/metrics.md lists each metric with its kind, unit and labels, and no other.
#[test]
fn metrics_page_is_the_metrics_list() {
    let page = std::fs::read_to_string(concat!(env!("CARGO_MANIFEST_DIR"), "/../docs/metrics.md"))
        .unwrap();
    let mut on_page = BTreeMap::new();
    for line in page
        .lines()
        .filter(|line| line.starts_with("| `toastrack_"))
    {
        let cells: Vec<&str> = line.trim_matches('|').split('|').map(str::trim).collect();
        let [name, kind, unit, labels, question] = cells[..] else {
            panic!("not five cells: {line}");
        };
        assert!(question.contains('?'), "no question: {line}");
        let labels = labels.replace('`', "");
        let described = format!("{kind} {unit} [{labels}]");
        let twice = on_page.insert(name.trim_matches('`').to_owned(), described);
        assert_eq!(twice, None, "{name} stands twice");
    }
    let in_program: BTreeMap<String, String> = METRICS
        .iter()
        .map(|metric| {
            let labels = metric.labels.join(", ");
            let described = format!("{} {} [{labels}]", metric.kind.as_str(), metric.unit);
            (metric.name.to_owned(), described)
        })
        .collect();
    assert_eq!(on_page, in_program);
}

/// Proves that the answer announces exactly the listed metrics, that each sample belongs to one
/// of them, and that every metric has a sample when there is something to count.
#[test]
fn answer_holds_the_listed_metrics() {
    let text = encode(&full_stats(), &full_readiness());
    let listed: BTreeSet<&str> = METRICS.iter().map(|metric| metric.name).collect();
    let announced: BTreeSet<&str> = text
        .lines()
        .filter_map(|line| line.strip_prefix("# TYPE "))
        .filter_map(|rest| rest.split(' ').next())
        .collect();
    let sampled: BTreeSet<&str> = text
        .lines()
        .filter(|line| !line.starts_with('#'))
        .filter_map(|line| line.split(['{', ' ']).next())
        .collect();
    assert_eq!(announced, listed);
    assert_eq!(sampled, listed);
}

/// Proves that a change of one counter is seen in one metric, so that no two are mixed up: every
/// number of the document gets a value of its own and is looked for in the answer.
#[test]
fn every_counter_reaches_the_answer() {
    let mut stats = full_stats();
    stats.uptime_seconds = 1001;
    stats.sessions.active = 1002;
    stats.sessions.limit = 1003;
    stats.sessions.total = 1004;
    stats.sessions.refused = 1005;
    stats.store.segments = 1006;
    stats.store.bytes_on_disk = 1007;
    stats.store.values_offloaded = 1008;
    stats.store.logical_bytes = 1009;
    stats.store.stored_bytes = 1010;
    stats.store.dedup_hits = 1011;
    stats.store.dedup_bytes_saved = 1012;
    stats.store.syncs = 1013;
    stats.store.sync_seconds = 1014.5;
    stats.store.reads = 1015;
    stats.store.read_errors = 1016;
    stats.cache.hits = 1017;
    stats.cache.misses = 1018;
    stats.cache.entries = 1019;
    stats.cache.bytes = 1020;
    stats.cache.capacity_bytes = 1021;
    stats.cache.evictions = 1022;
    stats.proxy.client_bytes_in = 1023;
    stats.proxy.client_bytes_out = 1024;
    stats.proxy.server_bytes_in = 1025;
    stats.proxy.server_bytes_out = 1026;
    stats.proxy.statements_rewritten = 1027;
    stats.proxy.values_resolved = 1028;
    stats.proxy.resolve_errors = 1029;
    stats.resolver.connections_active = 1030;
    stats.resolver.connections_total = 1031;
    stats.resolver.logins_refused = 1032;
    stats.resolver.values_resolved = 1033;
    stats.resolver.bytes_resolved = 1034;
    stats.resolver.not_references = 1035;
    stats.resolver.errors = 1036;
    stats.columns[0].values_offloaded = 1037;
    stats.columns[0].bytes_offloaded = 1038;
    stats.columns[0].values_resolved = 1039;
    stats.columns[0].bytes_resolved = 1040;
    stats.columns[0].left_inline = 1041;
    let text = encode(&stats, &full_readiness());
    for (series, value) in [
        ("toastrack_uptime_seconds", "1001"),
        ("toastrack_sessions_active", "1002"),
        ("toastrack_sessions_limit", "1003"),
        ("toastrack_sessions_total", "1004"),
        ("toastrack_sessions_refused_total", "1005"),
        ("toastrack_store_segments", "1006"),
        ("toastrack_store_disk_bytes", "1007"),
        ("toastrack_store_values_total", "1008"),
        ("toastrack_store_logical_bytes_total", "1009"),
        ("toastrack_store_stored_bytes_total", "1010"),
        ("toastrack_store_dedup_hits_total", "1011"),
        ("toastrack_store_dedup_saved_bytes_total", "1012"),
        ("toastrack_store_syncs_total", "1013"),
        ("toastrack_store_sync_seconds_total", "1014.5"),
        ("toastrack_store_reads_total", "1015"),
        ("toastrack_store_read_errors_total", "1016"),
        ("toastrack_cache_hits_total", "1017"),
        ("toastrack_cache_misses_total", "1018"),
        ("toastrack_cache_entries", "1019"),
        ("toastrack_cache_bytes", "1020"),
        ("toastrack_cache_capacity_bytes", "1021"),
        ("toastrack_cache_evictions_total", "1022"),
        ("peer=\"client\",direction=\"in\"}", "1023"),
        ("peer=\"client\",direction=\"out\"}", "1024"),
        ("peer=\"server\",direction=\"in\"}", "1025"),
        ("peer=\"server\",direction=\"out\"}", "1026"),
        ("toastrack_proxy_statements_rewritten_total", "1027"),
        ("toastrack_proxy_values_resolved_total", "1028"),
        ("toastrack_proxy_resolve_errors_total", "1029"),
        ("toastrack_resolver_connections_active", "1030"),
        ("toastrack_resolver_connections_total", "1031"),
        ("toastrack_resolver_logins_refused_total", "1032"),
        ("toastrack_resolver_values_total", "1033"),
        ("toastrack_resolver_value_bytes_total", "1034"),
        ("toastrack_resolver_not_references_total", "1035"),
        ("toastrack_resolver_errors_total", "1036"),
        ("toastrack_column_values_offloaded_total{", "1037"),
        ("toastrack_column_offloaded_bytes_total{", "1038"),
        ("toastrack_column_values_resolved_total{", "1039"),
        ("toastrack_column_resolved_bytes_total{", "1040"),
        ("toastrack_column_left_inline_total{", "1041"),
        ("reason=\"too_small\"}", "3"),
    ] {
        let found = text
            .lines()
            .any(|line| line.contains(series) && line.ends_with(&format!(" {value}")));
        assert!(found, "{series} {value} is not in the answer");
    }
}

/// Proves that openapi.json describes each route and no other, and which need the token.
#[test]
fn description_has_the_routes() {
    let description: Value = serde_json::from_str(OPENAPI_JSON).unwrap();
    let paths = description["paths"].as_object().unwrap();
    let described: BTreeSet<&str> = paths.keys().map(String::as_str).collect();
    let served: BTreeSet<&str> = ROUTES.iter().map(|route| route.path).collect();
    assert_eq!(described, served);
    for route in ROUTES {
        let operation = &paths[route.path]["get"];
        let security = operation
            .get("security")
            .unwrap_or(&description["security"]);
        let open = security == &json!([]) || security[0] == json!({});
        assert_eq!(open, !route.needs_token, "{}", route.path);
    }
}

/// Proves that the described fields of the statistics and of the readiness are exactly those that
/// are answered, with their types.
#[test]
fn description_has_the_fields() {
    let description: Value = serde_json::from_str(OPENAPI_JSON).unwrap();
    let answers = [
        ("Stats", serde_json::to_value(full_stats()).unwrap()),
        ("Readiness", serde_json::to_value(full_readiness()).unwrap()),
    ];
    for (name, answer) in answers {
        let schema = &description["components"]["schemas"][name];
        assert_fits(&description, schema, &answer, name);
    }
    // Also with nothing in it: what is optional must be described as such.
    let schema = &description["components"]["schemas"]["Stats"];
    let empty = serde_json::to_value(Stats::default()).unwrap();
    assert_fits(&description, schema, &empty, "Stats");
}

/// Panics unless `value` has exactly the fields of `schema` and each has the described type.
fn assert_fits(description: &Value, schema: &Value, value: &Value, place: &str) {
    if let Some(target) = schema["$ref"].as_str() {
        let pointed = description.pointer(target.trim_start_matches('#'));
        let pointed = pointed.unwrap_or_else(|| panic!("{place}: {target} leads nowhere"));
        return assert_fits(description, pointed, value, place);
    }
    let found = match value {
        Value::Null => "null",
        Value::Bool(_) => "boolean",
        Value::String(_) => "string",
        Value::Array(_) => "array",
        Value::Object(_) => "object",
        Value::Number(number) if number.is_f64() => "number",
        Value::Number(_) => "integer",
    };
    let allowed = match &schema["type"] {
        Value::Array(types) => types.clone(),
        one => vec![one.clone()],
    };
    assert!(
        allowed.contains(&json!(found)),
        "{place}: {found}, not {allowed:?}"
    );
    match value {
        Value::Array(items) => {
            for item in items {
                assert_fits(description, &schema["items"], item, place);
            }
        }
        Value::Object(fields) => match schema["properties"].as_object() {
            Some(properties) => {
                let described: BTreeSet<&String> = properties.keys().collect();
                let answered: BTreeSet<&String> = fields.keys().collect();
                assert_eq!(described, answered, "{place}");
                let required = schema["required"].as_array().unwrap();
                assert_eq!(
                    required.len(),
                    properties.len(),
                    "{place}: all are always there"
                );
                for (name, field) in fields {
                    let place = format!("{place}.{name}");
                    assert!(properties[name]["description"].is_string(), "{place}");
                    assert_fits(description, &properties[name], field, &place);
                }
            }
            None => {
                for (name, field) in fields {
                    let schema = &schema["additionalProperties"];
                    assert_fits(description, schema, field, &format!("{place}.{name}"));
                }
            }
        },
        Value::String(text) => {
            if let Some(allowed) = schema["enum"].as_array() {
                assert!(allowed.contains(&json!(text)), "{place}: {text}");
            }
        }
        Value::Null | Value::Bool(_) | Value::Number(_) => {}
    }
}
