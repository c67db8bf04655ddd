-- References to values of more than 1 MiB, which are stored in pieces (codec 2). The server does not
-- put them together itself: value_from_segment leaves every codec but raw to the resolver.
CREATE OR REPLACE FUNCTION toastrack.reference_fields(spelled pg_catalog.text) RETURNS pg_catalog.bytea
    LANGUAGE plpgsql IMMUTABLE STRICT PARALLEL SAFE AS $function$
DECLARE
    fields pg_catalog.bytea;
    kind_codec pg_catalog.int4;
BEGIN
    -- COLLATE "C", since a nondeterministic collation would refuse to search.
    -- The length apart: a counted repetition in the expression would cost ten times the rest.
    IF pg_catalog.octet_length(spelled) OPERATOR(pg_catalog.<>) 62
        OR (spelled COLLATE "C") OPERATOR(pg_catalog.!~) '^toast:[A-Za-z0-9_-]*$'::pg_catalog.text THEN
        RETURN NULL;
    END IF;
    fields := pg_catalog.decode(
        pg_catalog.replace(pg_catalog.replace(pg_catalog.substr(spelled COLLATE "C", 7), '-', '+'), '_', '/'), 'base64');
    kind_codec := pg_catalog.get_byte(fields, 1);
    IF pg_catalog.get_byte(fields, 0) OPERATOR(pg_catalog.<>) 1
        OR (kind_codec OPERATOR(pg_catalog.&) 7) NOT BETWEEN 1 AND 5
        OR (kind_codec OPERATOR(pg_catalog.&) 248) NOT IN (0, 16, 32)
        OR (pg_catalog.get_byte(fields, 6) OPERATOR(pg_catalog.&) 7) OPERATOR(pg_catalog.<>) 0
        OR toastrack.u32(fields, 10) OPERATOR(pg_catalog.>) toastrack.u32(fields, 14)
        OR toastrack.u32(fields, 14) OPERATOR(pg_catalog.>)
            (CASE kind_codec OPERATOR(pg_catalog.&) 248 WHEN 32 THEN 1073741823 ELSE 1048576 END)
        OR toastrack.u32(fields, 18) OPERATOR(pg_catalog.>) toastrack.u32(fields, 14)
    THEN
        RETURN NULL;
    END IF;
    RETURN fields;
END
$function$;
