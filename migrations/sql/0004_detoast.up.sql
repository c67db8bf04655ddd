-- From a reference to its value, in the server.
--
-- toastrack.detoast(v) is a plain SQL expression that the planner inlines: for an inline value
-- it costs a look at the length. It is not STRICT because a STRICT function with a CASE in it
-- cannot be inlined; it returns NULL for NULL all the same. Everything with a cost or a
-- privilege sits behind it, in functions that only references reach.
--
-- Formats: docs/format/reference-v1.md, docs/format/segment-v1.md.

-- Does the field have the length and the prefix of a reference? Does not read the value unless
-- the length fits.
CREATE FUNCTION toastrack.looks_like_reference(toastrack.text) RETURNS pg_catalog.bool
    LANGUAGE sql IMMUTABLE PARALLEL SAFE
    RETURN toastrack.raw_length($1) OPERATOR(pg_catalog.=) 62
        AND pg_catalog.substr(toastrack.raw_bytes($1), 1, 6) OPERATOR(pg_catalog.=) '\x746f6173743a'::pg_catalog.bytea;
CREATE FUNCTION toastrack.looks_like_reference(toastrack.varchar) RETURNS pg_catalog.bool
    LANGUAGE sql IMMUTABLE PARALLEL SAFE
    RETURN toastrack.raw_length($1) OPERATOR(pg_catalog.=) 62
        AND pg_catalog.substr(toastrack.raw_bytes($1), 1, 6) OPERATOR(pg_catalog.=) '\x746f6173743a'::pg_catalog.bytea;
CREATE FUNCTION toastrack.looks_like_reference(toastrack.json) RETURNS pg_catalog.bool
    LANGUAGE sql IMMUTABLE PARALLEL SAFE
    RETURN toastrack.raw_length($1) OPERATOR(pg_catalog.=) 64
        AND pg_catalog.substr(toastrack.raw_bytes($1), 1, 7) OPERATOR(pg_catalog.=) '\x22746f6173743a'::pg_catalog.bytea;
-- A jsonb scalar string of 62 bytes takes 70: two words of structure stand before it.
CREATE FUNCTION toastrack.looks_like_reference(toastrack.jsonb) RETURNS pg_catalog.bool
    LANGUAGE sql IMMUTABLE PARALLEL SAFE
    RETURN toastrack.raw_length($1) OPERATOR(pg_catalog.=) 70
        AND pg_catalog.substr(toastrack.raw_bytes($1), 9, 6) OPERATOR(pg_catalog.=) '\x746f6173743a'::pg_catalog.bytea
        AND pg_catalog.jsonb_typeof(toastrack.raw($1)) OPERATOR(pg_catalog.=) 'string'::pg_catalog.text;
CREATE FUNCTION toastrack.looks_like_reference(toastrack.bytea) RETURNS pg_catalog.bool
    LANGUAGE sql IMMUTABLE PARALLEL SAFE
    RETURN toastrack.raw_length($1) OPERATOR(pg_catalog.=) 50
        AND pg_catalog.substr(toastrack.raw($1), 1, 8) OPERATOR(pg_catalog.=) '\xf7544f4153540d0a'::pg_catalog.bytea;

-- The text spelling of what looks like a reference.
CREATE FUNCTION toastrack.spelling(toastrack.text) RETURNS pg_catalog.text
    LANGUAGE sql IMMUTABLE PARALLEL SAFE
    RETURN toastrack.raw($1);
CREATE FUNCTION toastrack.spelling(toastrack.varchar) RETURNS pg_catalog.text
    LANGUAGE sql IMMUTABLE PARALLEL SAFE
    RETURN toastrack.raw($1)::pg_catalog.text;
CREATE FUNCTION toastrack.spelling(toastrack.json) RETURNS pg_catalog.text
    LANGUAGE sql IMMUTABLE PARALLEL SAFE
    RETURN pg_catalog.substr(toastrack.raw($1)::pg_catalog.text, 2, 62);
CREATE FUNCTION toastrack.spelling(toastrack.jsonb) RETURNS pg_catalog.text
    LANGUAGE sql IMMUTABLE PARALLEL SAFE
    RETURN toastrack.raw($1) OPERATOR(pg_catalog.#>>) '{}'::pg_catalog.text[];
CREATE FUNCTION toastrack.spelling(toastrack.bytea) RETURNS pg_catalog.text
    LANGUAGE sql IMMUTABLE PARALLEL SAFE
    RETURN 'toast:'::pg_catalog.text OPERATOR(pg_catalog.||) pg_catalog.translate(
        pg_catalog.encode(pg_catalog.substr(toastrack.raw($1), 9), 'base64'), '+/', '-_');

-- The 42 bytes of fields behind a text spelling; NULL when no store of this version can have
-- written them, so that the field is ordinary data without asking anybody.
CREATE FUNCTION toastrack.reference_fields(spelled pg_catalog.text) RETURNS pg_catalog.bytea
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
        OR (kind_codec OPERATOR(pg_catalog.&) 248) NOT IN (0, 16)
        OR (pg_catalog.get_byte(fields, 6) OPERATOR(pg_catalog.&) 7) OPERATOR(pg_catalog.<>) 0
        OR toastrack.u32(fields, 10) OPERATOR(pg_catalog.>) toastrack.u32(fields, 14)
        OR toastrack.u32(fields, 14) OPERATOR(pg_catalog.>) 1048576
        OR toastrack.u32(fields, 18) OPERATOR(pg_catalog.>) toastrack.u32(fields, 14)
    THEN
        RETURN NULL;
    END IF;
    RETURN fields;
END
$function$;

-- A little-endian u32 at an offset from 0.
CREATE FUNCTION toastrack.u32(bytes pg_catalog.bytea, at pg_catalog.int4) RETURNS pg_catalog.int8
    LANGUAGE sql IMMUTABLE PARALLEL SAFE
    RETURN pg_catalog.get_byte(bytes, at)::pg_catalog.int8
        OPERATOR(pg_catalog.|) (pg_catalog.get_byte(bytes, at OPERATOR(pg_catalog.+) 1)::pg_catalog.int8 OPERATOR(pg_catalog.<<) 8)
        OPERATOR(pg_catalog.|) (pg_catalog.get_byte(bytes, at OPERATOR(pg_catalog.+) 2)::pg_catalog.int8 OPERATOR(pg_catalog.<<) 16)
        OPERATOR(pg_catalog.|) (pg_catalog.get_byte(bytes, at OPERATOR(pg_catalog.+) 3)::pg_catalog.int8 OPERATOR(pg_catalog.<<) 24);

-- Where the server itself can read the store, or NULL. Written anew by the settings, from
-- toastrack.config, so that detoasting needs no query to know it.
CREATE FUNCTION toastrack.store_directory() RETURNS pg_catalog.text
    LANGUAGE sql IMMUTABLE PARALLEL SAFE
    RETURN NULL::pg_catalog.text;

-- The value of a reference, from the segment file itself; NULL when the file is not there or
-- holds anything else at that place, which the resolver then has to explain.
-- A record is 80 bytes of header, then the payload. Everything in the header that does not need
-- the store's key is compared in one go: magic, lengths, type, kind, codec, flags, identity,
-- place, and the SHA-256 of the payload (S4).
CREATE FUNCTION toastrack.value_from_segment(fields pg_catalog.bytea) RETURNS pg_catalog.bytea
    LANGUAGE plpgsql STABLE PARALLEL SAFE AS $function$
DECLARE
    record pg_catalog.bytea;
    payload pg_catalog.bytea;
BEGIN
    IF toastrack.store_directory() IS NULL
        OR pg_catalog.get_byte(fields, 1) OPERATOR(pg_catalog.>) 7 THEN
        RETURN NULL;
    END IF;
    record := pg_catalog.pg_read_binary_file(
        toastrack.store_directory() OPERATOR(pg_catalog.||) '/segments/'
            OPERATOR(pg_catalog.||) pg_catalog.lpad(pg_catalog.to_hex(toastrack.u32(fields, 2)), 8, '0')
            OPERATOR(pg_catalog.||) '.seg',
        toastrack.u32(fields, 6), 80 OPERATOR(pg_catalog.+) toastrack.u32(fields, 10), true);
    payload := pg_catalog.substr(record, 81);
    IF (pg_catalog.substr(record, 1, 4) OPERATOR(pg_catalog.||) pg_catalog.substr(record, 9, 72))
        OPERATOR(pg_catalog.=) ('\x54524331'::pg_catalog.bytea
            OPERATOR(pg_catalog.||) pg_catalog.substr(fields, 11, 12)
            OPERATOR(pg_catalog.||) '\x01'::pg_catalog.bytea
            OPERATOR(pg_catalog.||) pg_catalog.substr(fields, 2, 1)
            OPERATOR(pg_catalog.||) '\x0001'::pg_catalog.bytea
            OPERATOR(pg_catalog.||) pg_catalog.substr(fields, 23, 16)
            OPERATOR(pg_catalog.||) pg_catalog.substr(fields, 3, 8)
            OPERATOR(pg_catalog.||) pg_catalog.sha256(payload))
    THEN
        RETURN payload;
    END IF;
    RETURN NULL;
END
$function$;
REVOKE ALL ON FUNCTION toastrack.value_from_segment(pg_catalog.bytea) FROM PUBLIC;

-- The bytes of the value that a text spelling refers to; NULL when it is ordinary data (S5).
-- IMMUTABLE because a reference means the same bytes for ever, wherever they are read from.
CREATE FUNCTION toastrack.value_of(spelled pg_catalog.text) RETURNS pg_catalog.bytea
    LANGUAGE plpgsql IMMUTABLE STRICT PARALLEL SAFE SECURITY DEFINER
    SET search_path = pg_catalog, pg_temp
    SET client_min_messages = error AS $function$
DECLARE
    fields CONSTANT pg_catalog.bytea := toastrack.reference_fields(spelled);
    value pg_catalog.bytea;
BEGIN
    IF fields IS NULL THEN
        RETURN NULL;
    END IF;
    value := toastrack.value_from_segment(fields);
    IF value IS NULL THEN
        value := toastrack.value_from_resolver(spelled);
    END IF;
    RETURN value;
END
$function$;

-- The same as text. PL/pgSQL, because convert_from is only STABLE, and a SQL expression with it
-- would keep detoast from being inlined.
CREATE FUNCTION toastrack.text_of(spelled pg_catalog.text) RETURNS pg_catalog.text
    LANGUAGE plpgsql IMMUTABLE STRICT PARALLEL SAFE AS $function$
BEGIN
    RETURN pg_catalog.convert_from(toastrack.value_of(spelled), 'UTF8');
END
$function$;

CREATE FUNCTION toastrack.detoast(toastrack.text) RETURNS pg_catalog.text
    LANGUAGE sql IMMUTABLE PARALLEL SAFE
    RETURN CASE WHEN toastrack.looks_like_reference($1)
        THEN COALESCE(toastrack.text_of(toastrack.spelling($1)), toastrack.raw($1))
        ELSE toastrack.raw($1) END;
CREATE FUNCTION toastrack.detoast(toastrack.varchar) RETURNS pg_catalog.varchar
    LANGUAGE sql IMMUTABLE PARALLEL SAFE
    RETURN CASE WHEN toastrack.looks_like_reference($1)
        THEN COALESCE(toastrack.text_of(toastrack.spelling($1))::pg_catalog.varchar, toastrack.raw($1))
        ELSE toastrack.raw($1) END;
CREATE FUNCTION toastrack.detoast(toastrack.json) RETURNS pg_catalog.json
    LANGUAGE sql IMMUTABLE PARALLEL SAFE
    RETURN CASE WHEN toastrack.looks_like_reference($1)
        THEN COALESCE(toastrack.text_of(toastrack.spelling($1))::pg_catalog.json, toastrack.raw($1))
        ELSE toastrack.raw($1) END;
CREATE FUNCTION toastrack.detoast(toastrack.jsonb) RETURNS pg_catalog.jsonb
    LANGUAGE sql IMMUTABLE PARALLEL SAFE
    RETURN CASE WHEN toastrack.looks_like_reference($1)
        THEN COALESCE(toastrack.text_of(toastrack.spelling($1))::pg_catalog.jsonb, toastrack.raw($1))
        ELSE toastrack.raw($1) END;
CREATE FUNCTION toastrack.detoast(toastrack.bytea) RETURNS pg_catalog.bytea
    LANGUAGE sql IMMUTABLE PARALLEL SAFE
    RETURN CASE WHEN toastrack.looks_like_reference($1)
        THEN COALESCE(toastrack.value_of(toastrack.spelling($1)), toastrack.raw($1))
        ELSE toastrack.raw($1) END;
