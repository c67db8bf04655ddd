DO $down$
DECLARE
    item pg_catalog.record;
    types CONSTANT pg_catalog.oid[] := ARRAY(
        SELECT oid FROM pg_catalog.pg_type WHERE typnamespace = 'toastrack'::pg_catalog.regnamespace);
BEGIN
    FOR item IN
        SELECT c.castsource::pg_catalog.regtype AS source, c.casttarget::pg_catalog.regtype AS target FROM pg_catalog.pg_cast AS c
        WHERE c.castsource = ANY (types) OR c.casttarget = ANY (types)
    LOOP
        EXECUTE pg_catalog.format('DROP CAST (%s AS %s)', item.source, item.target);
    END LOOP;
    FOR item IN
        SELECT p.oid::pg_catalog.regprocedure AS signature FROM pg_catalog.pg_proc AS p
        WHERE p.pronamespace = 'toastrack'::pg_catalog.regnamespace
          AND (p.proname ~ '^(as|to)_'
               OR p.proname IN ('create_casts', 'casts_in', 'casts_out', 'relabel',
                                'fit_varchar', 'fit_varchar_plain', 'fit_varchar_reference'))
        -- fit_varchar is made of the other two
        ORDER BY p.proname = 'fit_varchar' DESC
    LOOP
        EXECUTE pg_catalog.format('DROP FUNCTION %s', item.signature);
    END LOOP;
END
$down$;
