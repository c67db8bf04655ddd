DO $down$
DECLARE
    item pg_catalog.record;
    types CONSTANT pg_catalog.oid[] := ARRAY(
        SELECT oid FROM pg_catalog.pg_type WHERE typnamespace = 'toastrack'::pg_catalog.regnamespace);
BEGIN
    FOR item IN
        SELECT c.opcname, m.amname FROM pg_catalog.pg_opclass AS c JOIN pg_catalog.pg_am AS m ON m.oid = c.opcmethod
        WHERE c.opcnamespace = 'toastrack'::pg_catalog.regnamespace
    LOOP
        -- The family goes with its only class.
        EXECUTE pg_catalog.format('DROP OPERATOR FAMILY toastrack.%I USING %I', item.opcname, item.amname);
    END LOOP;
    -- Between the types first: their functions are made of the operators of one type.
    FOR item IN
        SELECT o.oid::pg_catalog.regoperator AS signature, o.oprcode::pg_catalog.oid::pg_catalog.regprocedure AS function
        FROM pg_catalog.pg_operator AS o
        WHERE o.oprnamespace = 'pg_catalog'::pg_catalog.regnamespace
          AND o.oprleft = ANY (types) AND o.oprright = ANY (types) AND o.oprleft <> o.oprright
    LOOP
        EXECUTE pg_catalog.format('DROP OPERATOR %s', item.signature);
        EXECUTE pg_catalog.format('DROP FUNCTION %s', item.function);
    END LOOP;
    FOR item IN
        SELECT o.oid::pg_catalog.regoperator AS signature FROM pg_catalog.pg_operator AS o
        WHERE o.oprnamespace = 'pg_catalog'::pg_catalog.regnamespace AND (o.oprleft = ANY (types) OR o.oprright = ANY (types))
    LOOP
        EXECUTE pg_catalog.format('DROP OPERATOR %s', item.signature);
    END LOOP;
    FOR item IN
        SELECT p.oid::pg_catalog.regprocedure AS signature FROM pg_catalog.pg_proc AS p
        WHERE p.pronamespace = 'pg_catalog'::pg_catalog.regnamespace AND p.proargtypes[0] = ANY (types)
    LOOP
        EXECUTE pg_catalog.format('DROP FUNCTION %s', item.signature);
    END LOOP;
    FOR item IN
        SELECT p.oid::pg_catalog.regprocedure AS signature FROM pg_catalog.pg_proc AS p
        WHERE p.pronamespace = 'toastrack'::pg_catalog.regnamespace
          AND p.proname IN ('cmp', 'hash', 'hash_extended', 'eq', 'ne', 'lt', 'le', 'gt', 'ge', 'concat',
                            'hash_bytes', 'hash_bytes_extended', 'same_identity', 'reference_char_len', 'reference_logical_len')
    LOOP
        EXECUTE pg_catalog.format('DROP FUNCTION %s', item.signature);
    END LOOP;
END
$down$;
