DO $down$
DECLARE
    item pg_catalog.record;
BEGIN
    FOR item IN
        SELECT p.oid::pg_catalog.regprocedure AS signature
        FROM pg_catalog.unnest(ARRAY[
                'detoast', 'text_of', 'value_of', 'value_from_segment', 'store_directory', 'reference_fields', 'u32', 'spelling',
                'looks_like_reference']) WITH ORDINALITY AS f (name, position)
        JOIN pg_catalog.pg_proc AS p ON p.proname = f.name AND p.pronamespace = 'toastrack'::pg_catalog.regnamespace
        ORDER BY f.position
    LOOP
        EXECUTE pg_catalog.format('DROP FUNCTION %s', item.signature);
    END LOOP;
END
$down$;
