-- Base types with the bytes and the input, output, receive and send functions of
-- their plain types. The functions are declared again because a type needs its own;
-- the code behind them is the server's.

-- ANALYZE sorts a sample of each column, which would fetch its values, and keep them all in memory.
-- A type may have a function that looks at its columns instead, and false from it means that there
-- is nothing to keep: Postgres itself takes only a width from values over 1 kB. The code is the
-- server's, of a function that takes nothing and is false wherever ANALYZE can run.
CREATE FUNCTION toastrack.no_statistics(pg_catalog.internal) RETURNS pg_catalog.bool
    LANGUAGE internal STABLE STRICT PARALLEL SAFE AS 'pg_is_in_recovery';

CREATE TYPE toastrack.text;
CREATE FUNCTION toastrack.text_in(pg_catalog.cstring) RETURNS toastrack.text
    LANGUAGE internal IMMUTABLE STRICT PARALLEL SAFE AS 'textin';
CREATE FUNCTION toastrack.text_out(toastrack.text) RETURNS pg_catalog.cstring
    LANGUAGE internal IMMUTABLE STRICT PARALLEL SAFE AS 'textout';
CREATE FUNCTION toastrack.text_recv(pg_catalog.internal) RETURNS toastrack.text
    LANGUAGE internal STABLE STRICT PARALLEL SAFE AS 'textrecv';
CREATE FUNCTION toastrack.text_send(toastrack.text) RETURNS pg_catalog.bytea
    LANGUAGE internal STABLE STRICT PARALLEL SAFE AS 'textsend';
-- In the category of strings so that it meets plain strings in coalesce, CASE and UNION,
-- but not preferred: text is, and an unknown literal must go on meaning text.
CREATE TYPE toastrack.text (
    INPUT = toastrack.text_in, OUTPUT = toastrack.text_out,
    RECEIVE = toastrack.text_recv, SEND = toastrack.text_send,
    ANALYZE = toastrack.no_statistics, LIKE = pg_catalog.text, CATEGORY = 'S', PREFERRED = false, COLLATABLE = true
);

CREATE TYPE toastrack.varchar;
CREATE FUNCTION toastrack.varchar_in(pg_catalog.cstring, pg_catalog.oid, pg_catalog.int4) RETURNS toastrack.varchar
    LANGUAGE internal IMMUTABLE STRICT PARALLEL SAFE AS 'varcharin';
CREATE FUNCTION toastrack.varchar_out(toastrack.varchar) RETURNS pg_catalog.cstring
    LANGUAGE internal IMMUTABLE STRICT PARALLEL SAFE AS 'varcharout';
CREATE FUNCTION toastrack.varchar_recv(pg_catalog.internal, pg_catalog.oid, pg_catalog.int4) RETURNS toastrack.varchar
    LANGUAGE internal STABLE STRICT PARALLEL SAFE AS 'varcharrecv';
CREATE FUNCTION toastrack.varchar_send(toastrack.varchar) RETURNS pg_catalog.bytea
    LANGUAGE internal STABLE STRICT PARALLEL SAFE AS 'varcharsend';
CREATE FUNCTION toastrack.varchar_typmod_in(pg_catalog.cstring[]) RETURNS pg_catalog.int4
    LANGUAGE internal IMMUTABLE STRICT PARALLEL SAFE AS 'varchartypmodin';
CREATE FUNCTION toastrack.varchar_typmod_out(pg_catalog.int4) RETURNS pg_catalog.cstring
    LANGUAGE internal IMMUTABLE STRICT PARALLEL SAFE AS 'varchartypmodout';
CREATE TYPE toastrack.varchar (
    INPUT = toastrack.varchar_in, OUTPUT = toastrack.varchar_out,
    RECEIVE = toastrack.varchar_recv, SEND = toastrack.varchar_send,
    TYPMOD_IN = toastrack.varchar_typmod_in, TYPMOD_OUT = toastrack.varchar_typmod_out,
    ANALYZE = toastrack.no_statistics, LIKE = pg_catalog.varchar, CATEGORY = 'S', PREFERRED = false, COLLATABLE = true
);

CREATE TYPE toastrack.json;
CREATE FUNCTION toastrack.json_in(pg_catalog.cstring) RETURNS toastrack.json
    LANGUAGE internal IMMUTABLE STRICT PARALLEL SAFE AS 'json_in';
CREATE FUNCTION toastrack.json_out(toastrack.json) RETURNS pg_catalog.cstring
    LANGUAGE internal IMMUTABLE STRICT PARALLEL SAFE AS 'json_out';
CREATE FUNCTION toastrack.json_recv(pg_catalog.internal) RETURNS toastrack.json
    LANGUAGE internal STABLE STRICT PARALLEL SAFE AS 'json_recv';
CREATE FUNCTION toastrack.json_send(toastrack.json) RETURNS pg_catalog.bytea
    LANGUAGE internal STABLE STRICT PARALLEL SAFE AS 'json_send';
CREATE TYPE toastrack.json (
    INPUT = toastrack.json_in, OUTPUT = toastrack.json_out,
    RECEIVE = toastrack.json_recv, SEND = toastrack.json_send,
    ANALYZE = toastrack.no_statistics, LIKE = pg_catalog.json
);

CREATE TYPE toastrack.jsonb;
CREATE FUNCTION toastrack.jsonb_in(pg_catalog.cstring) RETURNS toastrack.jsonb
    LANGUAGE internal IMMUTABLE STRICT PARALLEL SAFE AS 'jsonb_in';
CREATE FUNCTION toastrack.jsonb_out(toastrack.jsonb) RETURNS pg_catalog.cstring
    LANGUAGE internal IMMUTABLE STRICT PARALLEL SAFE AS 'jsonb_out';
CREATE FUNCTION toastrack.jsonb_recv(pg_catalog.internal) RETURNS toastrack.jsonb
    LANGUAGE internal STABLE STRICT PARALLEL SAFE AS 'jsonb_recv';
CREATE FUNCTION toastrack.jsonb_send(toastrack.jsonb) RETURNS pg_catalog.bytea
    LANGUAGE internal STABLE STRICT PARALLEL SAFE AS 'jsonb_send';
CREATE TYPE toastrack.jsonb (
    INPUT = toastrack.jsonb_in, OUTPUT = toastrack.jsonb_out,
    RECEIVE = toastrack.jsonb_recv, SEND = toastrack.jsonb_send,
    ANALYZE = toastrack.no_statistics, LIKE = pg_catalog.jsonb
);

CREATE TYPE toastrack.bytea;
CREATE FUNCTION toastrack.bytea_in(pg_catalog.cstring) RETURNS toastrack.bytea
    LANGUAGE internal IMMUTABLE STRICT PARALLEL SAFE AS 'byteain';
CREATE FUNCTION toastrack.bytea_out(toastrack.bytea) RETURNS pg_catalog.cstring
    LANGUAGE internal IMMUTABLE STRICT PARALLEL SAFE AS 'byteaout';
CREATE FUNCTION toastrack.bytea_recv(pg_catalog.internal) RETURNS toastrack.bytea
    LANGUAGE internal IMMUTABLE STRICT PARALLEL SAFE AS 'bytearecv';
CREATE FUNCTION toastrack.bytea_send(toastrack.bytea) RETURNS pg_catalog.bytea
    LANGUAGE internal IMMUTABLE STRICT PARALLEL SAFE AS 'byteasend';
CREATE TYPE toastrack.bytea (
    INPUT = toastrack.bytea_in, OUTPUT = toastrack.bytea_out,
    RECEIVE = toastrack.bytea_recv, SEND = toastrack.bytea_send,
    ANALYZE = toastrack.no_statistics, LIKE = pg_catalog.bytea
);

-- What stands in the row, as the plain type: the same bytes, not copied, not even fetched
-- from TOAST. int8up (the unary plus of int8) hands its argument through untouched, which for
-- a type passed by reference is the pointer. Needs a 64-bit server; install checks that.
CREATE FUNCTION toastrack.raw(toastrack.text) RETURNS pg_catalog.text
    LANGUAGE internal IMMUTABLE STRICT PARALLEL SAFE LEAKPROOF AS 'int8up';
CREATE FUNCTION toastrack.raw(toastrack.varchar) RETURNS pg_catalog.varchar
    LANGUAGE internal IMMUTABLE STRICT PARALLEL SAFE LEAKPROOF AS 'int8up';
CREATE FUNCTION toastrack.raw(toastrack.json) RETURNS pg_catalog.json
    LANGUAGE internal IMMUTABLE STRICT PARALLEL SAFE LEAKPROOF AS 'int8up';
CREATE FUNCTION toastrack.raw(toastrack.jsonb) RETURNS pg_catalog.jsonb
    LANGUAGE internal IMMUTABLE STRICT PARALLEL SAFE LEAKPROOF AS 'int8up';
CREATE FUNCTION toastrack.raw(toastrack.bytea) RETURNS pg_catalog.bytea
    LANGUAGE internal IMMUTABLE STRICT PARALLEL SAFE LEAKPROOF AS 'int8up';

-- Length in bytes of what stands in the row, read from the datum's head alone.
CREATE FUNCTION toastrack.raw_length(toastrack.text) RETURNS pg_catalog.int4
    LANGUAGE internal IMMUTABLE STRICT PARALLEL SAFE AS 'byteaoctetlen';
CREATE FUNCTION toastrack.raw_length(toastrack.varchar) RETURNS pg_catalog.int4
    LANGUAGE internal IMMUTABLE STRICT PARALLEL SAFE AS 'byteaoctetlen';
CREATE FUNCTION toastrack.raw_length(toastrack.json) RETURNS pg_catalog.int4
    LANGUAGE internal IMMUTABLE STRICT PARALLEL SAFE AS 'byteaoctetlen';
CREATE FUNCTION toastrack.raw_length(toastrack.jsonb) RETURNS pg_catalog.int4
    LANGUAGE internal IMMUTABLE STRICT PARALLEL SAFE AS 'byteaoctetlen';
CREATE FUNCTION toastrack.raw_length(toastrack.bytea) RETURNS pg_catalog.int4
    LANGUAGE internal IMMUTABLE STRICT PARALLEL SAFE AS 'byteaoctetlen';

-- The bytes in the row without a type on them; jsonb in its binary form.
CREATE FUNCTION toastrack.raw_bytes(toastrack.text) RETURNS pg_catalog.bytea
    LANGUAGE internal IMMUTABLE STRICT PARALLEL SAFE LEAKPROOF AS 'int8up';
CREATE FUNCTION toastrack.raw_bytes(toastrack.varchar) RETURNS pg_catalog.bytea
    LANGUAGE internal IMMUTABLE STRICT PARALLEL SAFE LEAKPROOF AS 'int8up';
CREATE FUNCTION toastrack.raw_bytes(toastrack.json) RETURNS pg_catalog.bytea
    LANGUAGE internal IMMUTABLE STRICT PARALLEL SAFE LEAKPROOF AS 'int8up';
CREATE FUNCTION toastrack.raw_bytes(toastrack.jsonb) RETURNS pg_catalog.bytea
    LANGUAGE internal IMMUTABLE STRICT PARALLEL SAFE LEAKPROOF AS 'int8up';
