-- Comparison, concatenation and length.
--
-- Operators and functions that SQL finds by name stand in pg_catalog: a schema on nobody's
-- search_path would not be looked at, and data || '{"z":1}' would then silently become
-- anynonarray || text. pg_dump does not dump what is in pg_catalog, so the statements here make
-- only what is missing, and every install runs them again.
--
-- The functions behind the operators are PL/pgSQL: a SQL expression would be inlined and would
-- take the operator away from indexes and hash joins, and where it is not inlined (in an operator
-- class) costs ten times as much.
--
-- Two references of equal identity are equal without reading anything. Anything else compares
-- the values.

CREATE OR REPLACE FUNCTION toastrack.same_identity(a pg_catalog.text, b pg_catalog.text) RETURNS pg_catalog.bool
    LANGUAGE plpgsql IMMUTABLE STRICT PARALLEL SAFE AS $function$
BEGIN
    RETURN COALESCE(pg_catalog.substr(toastrack.reference_fields(a), 23, 16)
        OPERATOR(pg_catalog.=) pg_catalog.substr(toastrack.reference_fields(b), 23, 16), false);
END
$function$;

-- The server has no hash function for bytea that SQL could call, but this is the one it uses.
CREATE OR REPLACE FUNCTION toastrack.hash_bytes(pg_catalog.bytea) RETURNS pg_catalog.int4
    LANGUAGE internal IMMUTABLE STRICT PARALLEL SAFE AS 'hashvarlena';
CREATE OR REPLACE FUNCTION toastrack.hash_bytes_extended(pg_catalog.bytea, pg_catalog.int8) RETURNS pg_catalog.int8
    LANGUAGE internal IMMUTABLE STRICT PARALLEL SAFE AS 'hashvarlenaextended';

DO $operators$
DECLARE
    kind pg_catalog.text;
    plain_cmp pg_catalog.text;
    plain_hash pg_catalog.text;
    plain_hash_extended pg_catalog.text;
    operator pg_catalog.record;
    made pg_catalog.text;
BEGIN
    FOR kind, plain_cmp, plain_hash, plain_hash_extended IN
        VALUES ('text', 'bttextcmp', 'pg_catalog.hashtext', 'pg_catalog.hashtextextended'), ('varchar', 'bttextcmp', 'pg_catalog.hashtext', 'pg_catalog.hashtextextended'),
               ('jsonb', 'jsonb_cmp', 'pg_catalog.jsonb_hash', 'pg_catalog.jsonb_hash_extended'), ('bytea', 'byteacmp', 'toastrack.hash_bytes', 'toastrack.hash_bytes_extended')
    LOOP
        EXECUTE pg_catalog.format($f$
            CREATE OR REPLACE FUNCTION toastrack.cmp(a toastrack.%1$I, b toastrack.%1$I) RETURNS pg_catalog.int4
                LANGUAGE plpgsql IMMUTABLE STRICT PARALLEL SAFE AS $function$
            BEGIN
                RETURN CASE WHEN toastrack.looks_like_reference(a) AND toastrack.looks_like_reference(b)
                             AND toastrack.same_identity(toastrack.spelling(a), toastrack.spelling(b)) THEN 0
                       ELSE pg_catalog.%2$I(toastrack.detoast(a), toastrack.detoast(b)) END;
            END
            $function$
            $f$, kind, plain_cmp);
        EXECUTE pg_catalog.format($f$
            CREATE OR REPLACE FUNCTION toastrack.hash(value toastrack.%1$I) RETURNS pg_catalog.int4
                LANGUAGE plpgsql IMMUTABLE STRICT PARALLEL SAFE AS $function$
            BEGIN
                RETURN %2$s(toastrack.detoast(value));
            END
            $function$
            $f$, kind, plain_hash);
        EXECUTE pg_catalog.format($f$
            CREATE OR REPLACE FUNCTION toastrack.hash_extended(value toastrack.%1$I, seed pg_catalog.int8) RETURNS pg_catalog.int8
                LANGUAGE plpgsql IMMUTABLE STRICT PARALLEL SAFE AS $function$
            BEGIN
                RETURN %2$s(toastrack.detoast(value), seed);
            END
            $function$
            $f$, kind, plain_hash_extended);

        FOR operator IN
            SELECT * FROM (VALUES
                ('eq', '=', '=', '<>', 'eqsel', 'eqjoinsel', ', HASHES, MERGES'),
                ('ne', '<>', '<>', '=', 'neqsel', 'neqjoinsel', ''),
                ('lt', '<', '>', '>=', 'scalarltsel', 'scalarltjoinsel', ''),
                ('le', '<=', '>=', '>', 'scalarlesel', 'scalarlejoinsel', ''),
                ('gt', '>', '<', '<=', 'scalargtsel', 'scalargtjoinsel', ''),
                ('ge', '>=', '<=', '<', 'scalargesel', 'scalargejoinsel', '')
            ) AS o (name, symbol, commutator, negator, restriction, joining, more)
        LOOP
            EXECUTE pg_catalog.format($f$
                CREATE OR REPLACE FUNCTION toastrack.%2$I(a toastrack.%1$I, b toastrack.%1$I) RETURNS pg_catalog.bool
                    LANGUAGE plpgsql IMMUTABLE STRICT PARALLEL SAFE AS $function$
                BEGIN
                    RETURN CASE WHEN toastrack.looks_like_reference(a) AND toastrack.looks_like_reference(b)
                                 AND toastrack.same_identity(toastrack.spelling(a), toastrack.spelling(b)) THEN %4$s
                           ELSE toastrack.detoast(a) OPERATOR(pg_catalog.%3$s) toastrack.detoast(b) END;
                END
                $function$
                $f$, kind, operator.name, operator.symbol, CASE WHEN operator.symbol IN ('=', '<=', '>=') THEN 'true' ELSE 'false' END);
            made := pg_catalog.format('pg_catalog.%s(toastrack.%I,toastrack.%I)', operator.symbol, kind, kind);
            IF pg_catalog.to_regoperator(made) IS NULL
                OR NOT EXISTS (SELECT FROM pg_catalog.pg_operator WHERE oid = pg_catalog.to_regoperator(made) AND oprcode <> 0) THEN
                EXECUTE pg_catalog.format('CREATE OPERATOR pg_catalog.%s (FUNCTION = toastrack.%I, LEFTARG = toastrack.%I, RIGHTARG = toastrack.%I,'
                    ' COMMUTATOR = OPERATOR(pg_catalog.%s), NEGATOR = OPERATOR(pg_catalog.%s), RESTRICT = pg_catalog.%I, JOIN = pg_catalog.%I%s)',
                    operator.symbol, operator.name, kind, kind, operator.commutator, operator.negator,
                    operator.restriction, operator.joining, operator.more);
            END IF;
        END LOOP;

        -- A dump restored without the operators leaves a family without its class.
        IF NOT EXISTS (SELECT FROM pg_catalog.pg_opclass AS c JOIN pg_catalog.pg_am AS m ON m.oid = c.opcmethod
                       WHERE m.amname = 'btree' AND c.opcdefault
                         AND c.opcintype = ('toastrack.' || pg_catalog.quote_ident(kind))::pg_catalog.regtype) THEN
            EXECUTE pg_catalog.format('DROP OPERATOR FAMILY IF EXISTS toastrack.%I USING btree', kind || '_ops');
            EXECUTE pg_catalog.format('CREATE OPERATOR CLASS toastrack.%2$I DEFAULT FOR TYPE toastrack.%1$I USING btree AS'
                ' OPERATOR 1 pg_catalog.<, OPERATOR 2 pg_catalog.<=, OPERATOR 3 pg_catalog.=, OPERATOR 4 pg_catalog.>=, OPERATOR 5 pg_catalog.>,'
                ' FUNCTION 1 toastrack.cmp(toastrack.%1$I, toastrack.%1$I)', kind, kind || '_ops');
        END IF;
        IF NOT EXISTS (SELECT FROM pg_catalog.pg_opclass AS c JOIN pg_catalog.pg_am AS m ON m.oid = c.opcmethod
                       WHERE m.amname = 'hash' AND c.opcdefault
                         AND c.opcintype = ('toastrack.' || pg_catalog.quote_ident(kind))::pg_catalog.regtype) THEN
            EXECUTE pg_catalog.format('DROP OPERATOR FAMILY IF EXISTS toastrack.%I USING hash', kind || '_ops');
            EXECUTE pg_catalog.format('CREATE OPERATOR CLASS toastrack.%2$I DEFAULT FOR TYPE toastrack.%1$I USING hash AS'
                ' OPERATOR 1 pg_catalog.=, FUNCTION 1 toastrack.hash(toastrack.%1$I),'
                ' FUNCTION 2 toastrack.hash_extended(toastrack.%1$I, pg_catalog.int8)', kind, kind || '_ops');
        END IF;
    END LOOP;
END
$operators$;

-- Between the two string types, whose casts into each other are both implicit: without an exact
-- match, varchar = text would have two best candidates. Written so that they are inlined, and the
-- operators of text stand in their place wherever one can be hashed or merged.
DO $between$
DECLARE
    pair pg_catalog.record;
    signature pg_catalog.text;
BEGIN
    FOR pair IN
        SELECT s.a, s.b, o.name, o.symbol, o.commutator, o.negator, o.restriction, o.joining
        FROM (VALUES ('toastrack.varchar', 'toastrack.text'), ('toastrack.text', 'toastrack.varchar')) AS s (a, b),
             (VALUES ('eq', '=', '=', '<>', 'eqsel', 'eqjoinsel'),
                     ('ne', '<>', '<>', '=', 'neqsel', 'neqjoinsel'),
                     ('lt', '<', '>', '>=', 'scalarltsel', 'scalarltjoinsel'),
                     ('le', '<=', '>=', '>', 'scalarlesel', 'scalarlejoinsel'),
                     ('gt', '>', '<', '<=', 'scalargtsel', 'scalargtjoinsel'),
                     ('ge', '>=', '<=', '<', 'scalargesel', 'scalargejoinsel')) AS o (name, symbol, commutator, negator, restriction, joining)
    LOOP
        EXECUTE pg_catalog.format('CREATE OR REPLACE FUNCTION toastrack.%I(%s, %s) RETURNS pg_catalog.bool LANGUAGE sql IMMUTABLE STRICT PARALLEL SAFE'
            ' AS ''SELECT $1::toastrack.text OPERATOR(pg_catalog.%s) $2::toastrack.text''', pair.name, pair.a, pair.b, pair.symbol);
        signature := pg_catalog.format('pg_catalog.%s(%s,%s)', pair.symbol, pair.a, pair.b);
        IF pg_catalog.to_regoperator(signature) IS NULL
            OR NOT EXISTS (SELECT FROM pg_catalog.pg_operator WHERE oid = pg_catalog.to_regoperator(signature) AND oprcode <> 0) THEN
            EXECUTE pg_catalog.format('CREATE OPERATOR pg_catalog.%s (FUNCTION = toastrack.%I, LEFTARG = %s, RIGHTARG = %s,'
                ' COMMUTATOR = OPERATOR(pg_catalog.%s), NEGATOR = OPERATOR(pg_catalog.%s), RESTRICT = pg_catalog.%I, JOIN = pg_catalog.%I)',
                pair.symbol, pair.name, pair.a, pair.b, pair.commutator, pair.negator, pair.restriction, pair.joining);
        END IF;
    END LOOP;
END
$between$;

-- Concatenation. Text has it through its category. A json, jsonb or bytea next to a text is
-- converted by the cast to text, as for the plain types.
DO $concatenation$
DECLARE
    pair pg_catalog.record;
BEGIN
    FOR pair IN
        SELECT o.name, o.a, o.b, o.result, pg_catalog.format('pg_catalog.||(%s,%s)', o.a, o.b) AS signature
        FROM (VALUES
            ('concat', 'toastrack.jsonb', 'toastrack.jsonb', 'jsonb'),
            ('concat', 'toastrack.jsonb', 'pg_catalog.jsonb', 'jsonb'),
            ('concat', 'pg_catalog.jsonb', 'toastrack.jsonb', 'jsonb'),
            ('concat', 'toastrack.bytea', 'toastrack.bytea', 'bytea'),
            ('concat', 'toastrack.bytea', 'pg_catalog.bytea', 'bytea'),
            ('concat', 'pg_catalog.bytea', 'toastrack.bytea', 'bytea')
        ) AS o (name, a, b, result)
    LOOP
        EXECUTE pg_catalog.format('CREATE OR REPLACE FUNCTION toastrack.%I(%s, %s) RETURNS pg_catalog.%I LANGUAGE sql IMMUTABLE PARALLEL SAFE'
            ' RETURN $1::pg_catalog.%I OPERATOR(pg_catalog.||) $2::pg_catalog.%I',
            pair.name, pair.a, pair.b, pair.result, pair.result, pair.result);
        IF pg_catalog.to_regoperator(pair.signature) IS NULL THEN
            EXECUTE pg_catalog.format('CREATE OPERATOR pg_catalog.|| (FUNCTION = toastrack.%I, LEFTARG = %s, RIGHTARG = %s)',
                pair.name, pair.a, pair.b);
        END IF;
    END LOOP;
END
$concatenation$;

-- Lengths, from the reference alone; NULL when the spelling is ordinary data.
CREATE OR REPLACE FUNCTION toastrack.reference_char_len(spelled pg_catalog.text) RETURNS pg_catalog.int4
    LANGUAGE plpgsql IMMUTABLE STRICT PARALLEL SAFE AS $function$
BEGIN
    RETURN toastrack.u32(toastrack.reference_fields(spelled), 18);
END
$function$;
CREATE OR REPLACE FUNCTION toastrack.reference_logical_len(spelled pg_catalog.text) RETURNS pg_catalog.int4
    LANGUAGE plpgsql IMMUTABLE STRICT PARALLEL SAFE AS $function$
BEGIN
    RETURN toastrack.u32(toastrack.reference_fields(spelled), 14);
END
$function$;

DO $functions$
DECLARE
    overload pg_catalog.record;
BEGIN
    FOR overload IN
        SELECT f.name, k.kind, k.plain, f.field, f.factor
        FROM (VALUES ('length', 'char', ''), ('char_length', 'char', ''), ('character_length', 'char', ''),
                     ('octet_length', 'logical', ''), ('bit_length', 'logical', ' OPERATOR(pg_catalog.*) 8')) AS f (name, field, factor),
             (VALUES ('text', 'text'), ('varchar', 'text'), ('bytea', 'bytea')) AS k (kind, plain)
        WHERE k.kind <> 'bytea' OR f.name IN ('length', 'octet_length', 'bit_length')
    LOOP
        EXECUTE pg_catalog.format('CREATE OR REPLACE FUNCTION pg_catalog.%1$I(toastrack.%2$I) RETURNS pg_catalog.int4'
            ' LANGUAGE sql IMMUTABLE PARALLEL SAFE'
            ' RETURN CASE WHEN toastrack.looks_like_reference($1)'
            ' THEN COALESCE(toastrack.reference_%4$s_len(toastrack.spelling($1))%5$s, pg_catalog.%1$I(toastrack.raw($1)::pg_catalog.%3$I))'
            ' ELSE pg_catalog.%1$I(toastrack.raw($1)::pg_catalog.%3$I) END',
            overload.name, overload.kind, overload.plain, overload.field, overload.factor);
    END LOOP;

    -- Functions of anyelement and anyarray that compose text: with an overload for the type, they
    -- see the value.
    FOR overload IN
        SELECT f.name, k.kind, f.result, f.volatility
        FROM (VALUES ('to_json', 'json', 'STABLE'), ('to_jsonb', 'jsonb', 'STABLE'),
                     ('quote_literal', 'text', 'STABLE'), ('quote_nullable', 'text', 'STABLE')) AS f (name, result, volatility),
             (VALUES ('text'), ('varchar'), ('json'), ('jsonb'), ('bytea')) AS k (kind)
    LOOP
        EXECUTE pg_catalog.format('CREATE OR REPLACE FUNCTION pg_catalog.%1$I(toastrack.%2$I) RETURNS pg_catalog.%3$I'
            ' LANGUAGE sql %4$s PARALLEL SAFE RETURN pg_catalog.%1$I($1::pg_catalog.%2$I)',
            overload.name, overload.kind, overload.result, overload.volatility);
    END LOOP;
    FOR overload IN
        SELECT k.kind FROM (VALUES ('text'), ('varchar'), ('json'), ('jsonb'), ('bytea')) AS k (kind)
    LOOP
        EXECUTE pg_catalog.format('CREATE OR REPLACE FUNCTION pg_catalog.array_to_string(toastrack.%1$I[], pg_catalog.text) RETURNS pg_catalog.text'
            ' LANGUAGE sql STABLE PARALLEL SAFE RETURN pg_catalog.array_to_string($1::pg_catalog.%1$I[], $2)', overload.kind);
        EXECUTE pg_catalog.format('CREATE OR REPLACE FUNCTION pg_catalog.array_to_string(toastrack.%1$I[], pg_catalog.text, pg_catalog.text) RETURNS pg_catalog.text'
            ' LANGUAGE sql STABLE PARALLEL SAFE RETURN pg_catalog.array_to_string($1::pg_catalog.%1$I[], $2, $3)', overload.kind);
    END LOOP;
END
$functions$;
