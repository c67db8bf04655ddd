//! What hangs on a column, and what a change of its type does to it.

use tokio_postgres::GenericClient;

use crate::column::Column;
use crate::error::Error;
use crate::plan::ColumnPlan;

/// Adds what hangs on the column to the plan: what Postgres would refuse, what it would rebuild, and what
/// would see references.
pub(crate) async fn check_dependents(
    client: &impl GenericClient,
    column: &Column,
    plan: &mut ColumnPlan,
) -> Result<(), Error> {
    for table in &column.relations {
        let arguments: [&(dyn tokio_postgres::types::ToSql + Sync); 2] =
            [&table.oid, &table.number];
        for row in client.query(BLOCKERS, &arguments).await? {
            let (what, advice): (&str, &str) = (row.get(0), row.get(1));
            plan.refusals.push(format!("{what}: {advice}"));
        }
        for row in client.query(CONSTRAINTS, &arguments).await? {
            let name: &str = row.get(0);
            let is_foreign_key: bool = row.get(1);
            if is_foreign_key {
                plan.refusals.push(format!(
                    "foreign key {name} on {}: keys stay inline, drop it first",
                    table.name
                ));
            } else {
                plan.notices.push(format!(
                    "CHECK constraint {name} on {} is verified again, which reads the table",
                    table.name
                ));
            }
        }
    }
    Ok(())
}

/// Adds what an index on the column needs. Only an index of the default operator class can follow to the
/// offloaded type.
pub(crate) async fn check_indexes(
    client: &impl GenericClient,
    column: &Column,
    plan: &mut ColumnPlan,
) -> Result<(), Error> {
    for table in &column.relations {
        let rows = client.query(INDEXES, &[&table.oid, &table.number]).await?;
        for row in rows {
            let (name, method): (&str, &str) = (row.get(0), row.get(1));
            let foreign_class: Option<&str> = row.get(2);
            let plain_type: &str = row.get(3);
            match foreign_class {
                Some(class) => plan.refusals.push(format!(
                    "index {name} ({method}, {class}): there is no such operator class for the offloaded type; drop it, \
                     and afterwards create it on the expression (({}::{plain_type}) {class})",
                    column.name
                )),
                None => plan.notices.push(format!("index {name} is rebuilt")),
            }
        }
    }
    Ok(())
}

/// Adds what composes text from whole rows or from the column, which then has the reference in it.
pub(crate) async fn check_text_composers(
    client: &impl GenericClient,
    column: &Column,
    plan: &mut ColumnPlan,
) -> Result<(), Error> {
    for row in client.query(COMPOSERS, &[&column.oids()]).await? {
        plan.differences.push(row.get(0));
    }
    Ok(())
}

const BLOCKERS: &str = "
SELECT DISTINCT
    pg_catalog.pg_describe_object(d.classid, d.objid, 0),
    CASE d.classid
        WHEN 'pg_catalog.pg_rewrite'::pg_catalog.regclass THEN 'it uses the column, and the type of what a view uses cannot be changed; drop it and create it again afterwards'
        WHEN 'pg_catalog.pg_trigger'::pg_catalog.regclass THEN 'it names the column in its definition; drop it and create it again afterwards'
        WHEN 'pg_catalog.pg_policy'::pg_catalog.regclass THEN 'it uses the column; drop it and create it again afterwards'
        WHEN 'pg_catalog.pg_attrdef'::pg_catalog.regclass THEN 'a generated column is made from the column; drop it and add it again afterwards'
        WHEN 'pg_catalog.pg_proc'::pg_catalog.regclass THEN 'its body names the column; drop it and create it again afterwards'
        ELSE 'it names the column; take it out and put it back afterwards'
    END
FROM pg_catalog.pg_depend AS d
WHERE d.refclassid = 'pg_catalog.pg_class'::pg_catalog.regclass AND d.refobjid = $1 AND d.refobjsubid = $2::pg_catalog.int2
  AND (d.classid IN ('pg_catalog.pg_rewrite'::pg_catalog.regclass, 'pg_catalog.pg_trigger'::pg_catalog.regclass,
                     'pg_catalog.pg_policy'::pg_catalog.regclass, 'pg_catalog.pg_proc'::pg_catalog.regclass,
                     'pg_catalog.pg_publication_rel'::pg_catalog.regclass)
       OR (d.classid = 'pg_catalog.pg_attrdef'::pg_catalog.regclass
           AND EXISTS (SELECT FROM pg_catalog.pg_attrdef AS x WHERE x.oid = d.objid AND x.adnum <> $2::pg_catalog.int2)))
UNION ALL
SELECT 'partition key of ' || p.partrelid::pg_catalog.regclass, 'the column is part of it'
FROM pg_catalog.pg_partitioned_table AS p
WHERE p.partrelid = $1 AND $2::pg_catalog.int2 = ANY (p.partattrs)
ORDER BY 1";

const CONSTRAINTS: &str = "
SELECT pg_catalog.quote_ident(c.conname), c.contype = 'f'
FROM pg_catalog.pg_constraint AS c
WHERE (c.conrelid = $1 AND $2::pg_catalog.int2 = ANY (c.conkey) AND c.contype IN ('c', 'f'))
   OR (c.confrelid = $1 AND $2::pg_catalog.int2 = ANY (c.confkey))
ORDER BY 1";

/// Key columns: the operator class if the offloaded type has none to take its place. Expressions and
/// predicates: no class, since they see the plain type through the cast.
const INDEXES: &str = "
SELECT x.indexrelid::pg_catalog.regclass::pg_catalog.text, m.amname::pg_catalog.text,
       (SELECT o.opcname::pg_catalog.text
        FROM pg_catalog.generate_series(0, x.indnkeyatts - 1) AS k (position)
        JOIN pg_catalog.pg_opclass AS o ON o.oid = x.indclass[k.position]
        WHERE x.indkey[k.position] = $2::pg_catalog.int2
          AND NOT (m.amname IN ('btree', 'hash') AND (o.opcdefault OR o.opcname = 'varchar_ops'))
        LIMIT 1),
       (SELECT pg_catalog.format_type(a.atttypid, NULL) FROM pg_catalog.pg_attribute AS a
        WHERE a.attrelid = $1 AND a.attnum = $2::pg_catalog.int2)
FROM pg_catalog.pg_index AS x
JOIN pg_catalog.pg_class AS c ON c.oid = x.indexrelid
JOIN pg_catalog.pg_am AS m ON m.oid = c.relam
WHERE x.indrelid = $1
  AND ($2::pg_catalog.int2 = ANY (x.indkey)
       OR EXISTS (SELECT FROM pg_catalog.pg_depend AS d
                  WHERE d.classid = 'pg_catalog.pg_class'::pg_catalog.regclass AND d.objid = x.indexrelid
                    AND d.refclassid = 'pg_catalog.pg_class'::pg_catalog.regclass
                    AND d.refobjid = $1 AND d.refobjsubid = $2::pg_catalog.int2))
ORDER BY 1";

/// Triggers and functions are found by their source: words that make text of a row or of any type. A guess that
/// names too much, as an operator can look and decide.
const COMPOSERS: &str = r"
WITH words AS (
    SELECT '\m(row_to_json|to_jsonb?|jsonb?_agg|jsonb?_object_agg|jsonb?_build_object|jsonb?_build_array|array_to_json|hstore|format|concat|concat_ws|xmlelement|xmlforest|query_to_xml|table_to_xml)\s*\(|\m(new|old)\s*::|\mcast\s*\(\s*(new|old)\M|\.\*\s*\)\s*::|\m(new|old)\.\*' AS pattern
), tables AS (
    SELECT c.oid, c.relname FROM pg_catalog.pg_class AS c WHERE c.oid = ANY ($1)
)
SELECT 'trigger ' || pg_catalog.quote_ident(t.tgname) || ' on ' || t.tgrelid::pg_catalog.regclass
       || ': its function ' || p.oid::pg_catalog.regprocedure || ' makes text of rows or values'
FROM pg_catalog.pg_trigger AS t
JOIN tables ON tables.oid = t.tgrelid
JOIN pg_catalog.pg_proc AS p ON p.oid = t.tgfoid
JOIN pg_catalog.pg_language AS l ON l.oid = p.prolang
CROSS JOIN words
WHERE NOT t.tgisinternal AND (l.lanname NOT IN ('plpgsql', 'sql', 'internal') OR p.prosrc ~* words.pattern)
UNION
SELECT 'function ' || p.oid::pg_catalog.regprocedure || ': names ' || tables.oid::pg_catalog.regclass || ' and makes text of rows or values'
FROM pg_catalog.pg_proc AS p
JOIN pg_catalog.pg_namespace AS n ON n.oid = p.pronamespace
JOIN pg_catalog.pg_language AS l ON l.oid = p.prolang
CROSS JOIN words
JOIN tables ON pg_catalog.strpos(pg_catalog.lower(p.prosrc), pg_catalog.lower(tables.relname::pg_catalog.text)) > 0
WHERE n.nspname NOT IN ('pg_catalog', 'information_schema', 'toastrack') AND l.lanname NOT IN ('internal', 'c')
  AND p.prorettype <> 'pg_catalog.trigger'::pg_catalog.regtype
  AND p.prosrc ~* words.pattern
UNION
SELECT pg_catalog.pg_describe_object(d.classid, d.objid, 0) || ': uses whole rows of ' || tables.oid::pg_catalog.regclass
FROM pg_catalog.pg_depend AS d
JOIN tables ON d.refclassid = 'pg_catalog.pg_class'::pg_catalog.regclass AND d.refobjid = tables.oid AND d.refobjsubid = 0
CROSS JOIN words
JOIN pg_catalog.pg_rewrite AS r ON d.classid = 'pg_catalog.pg_rewrite'::pg_catalog.regclass AND r.oid = d.objid
WHERE r.ev_class <> tables.oid AND pg_catalog.pg_get_ruledef(r.oid) ~* words.pattern
UNION
SELECT 'publication ' || pg_catalog.quote_ident(p.pubname) || ': subscribers of ' || tables.oid::pg_catalog.regclass || ' receive references'
FROM tables
CROSS JOIN LATERAL (
    SELECT pub.pubname FROM pg_catalog.pg_publication AS pub
    LEFT JOIN pg_catalog.pg_publication_tables AS pt ON pt.pubname = pub.pubname
    LEFT JOIN pg_catalog.pg_class AS c ON c.relname = pt.tablename
    LEFT JOIN pg_catalog.pg_namespace AS n ON n.oid = c.relnamespace AND n.nspname = pt.schemaname
    WHERE pub.puballtables OR (c.oid = tables.oid AND n.oid IS NOT NULL)
) AS p
ORDER BY 1";
