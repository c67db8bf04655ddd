-- A type and its input and output functions need each other, so only CASCADE drops them; that
-- nothing else would go with them is checked first.
DO $down$
DECLARE
    item pg_catalog.record;
    kind pg_catalog.text;
BEGIN
    FOR item IN
        SELECT p.oid::pg_catalog.regprocedure AS signature FROM pg_catalog.pg_proc AS p
        WHERE p.pronamespace = 'toastrack'::pg_catalog.regnamespace AND p.proname IN ('raw', 'raw_length', 'raw_bytes')
    LOOP
        EXECUTE pg_catalog.format('DROP FUNCTION %s', item.signature);
    END LOOP;
    FOREACH kind IN ARRAY ARRAY['text', 'varchar', 'json', 'jsonb', 'bytea'] LOOP
        FOR item IN
            SELECT pg_catalog.pg_describe_object(d.classid, d.objid, d.objsubid) AS object
            FROM pg_catalog.pg_type AS t
            JOIN pg_catalog.pg_depend AS d ON d.refclassid = 'pg_catalog.pg_type'::pg_catalog.regclass AND d.refobjid IN (t.oid, t.typarray)
            LEFT JOIN pg_catalog.pg_proc AS p ON d.classid = 'pg_catalog.pg_proc'::pg_catalog.regclass AND p.oid = d.objid
            WHERE t.typname = kind AND t.typnamespace = 'toastrack'::pg_catalog.regnamespace
              AND d.deptype <> 'i'
              AND (p.oid IS NULL OR p.pronamespace <> 'toastrack'::pg_catalog.regnamespace)
        LOOP
            RAISE EXCEPTION 'cannot drop type toastrack.% because % depends on it', kind, item.object
                USING ERRCODE = 'dependent_objects_still_exist';
        END LOOP;
        EXECUTE pg_catalog.format('DROP TYPE toastrack.%I CASCADE', kind);
    END LOOP;
END
$down$;
DROP FUNCTION toastrack.varchar_typmod_in(pg_catalog.cstring[]), toastrack.varchar_typmod_out(pg_catalog.int4);
DROP FUNCTION IF EXISTS toastrack.no_statistics(pg_catalog.internal);
