-- Casts in both directions.
--
-- In (plain to toastrack): the same bytes where the plain types share them, as assignment: a
-- plain value never turns into an offloaded type by itself while an operator is looked up.
-- Out (toastrack to plain): through detoast. Implicit to the plain type, so that every operator
-- and function of it applies; to all else no more willing than assignment, so that an
-- exact match on some other type never wins over the plain one (body = char_column must
-- compare as text).
-- Where the plain type converts through output and input text, a cast has to be declared, or the
-- server would convert the reference's own text.

-- To and from the plain type.
CREATE CAST (pg_catalog.text AS toastrack.text) WITHOUT FUNCTION AS ASSIGNMENT;
CREATE CAST (toastrack.text AS pg_catalog.text) WITH FUNCTION toastrack.detoast(toastrack.text) AS IMPLICIT;
CREATE CAST (pg_catalog.varchar AS toastrack.varchar) WITHOUT FUNCTION AS ASSIGNMENT;
CREATE CAST (toastrack.varchar AS pg_catalog.varchar) WITH FUNCTION toastrack.detoast(toastrack.varchar) AS IMPLICIT;
CREATE CAST (pg_catalog.json AS toastrack.json) WITHOUT FUNCTION AS ASSIGNMENT;
CREATE CAST (toastrack.json AS pg_catalog.json) WITH FUNCTION toastrack.detoast(toastrack.json) AS IMPLICIT;
CREATE CAST (pg_catalog.jsonb AS toastrack.jsonb) WITHOUT FUNCTION AS ASSIGNMENT;
CREATE CAST (toastrack.jsonb AS pg_catalog.jsonb) WITH FUNCTION toastrack.detoast(toastrack.jsonb) AS IMPLICIT;
CREATE CAST (pg_catalog.bytea AS toastrack.bytea) WITHOUT FUNCTION AS ASSIGNMENT;
CREATE CAST (toastrack.bytea AS pg_catalog.bytea) WITH FUNCTION toastrack.detoast(toastrack.bytea) AS IMPLICIT;

-- All the others. Called again by every install, for types that came since.
CREATE FUNCTION toastrack.create_casts() RETURNS pg_catalog.int4
    LANGUAGE plpgsql VOLATILE
    SET search_path = pg_catalog, pg_temp AS $function$
DECLARE
    kind pg_catalog.text;
    pair pg_catalog.record;
    function_name pg_catalog.text;
    made pg_catalog.int4 := 0;
BEGIN
    FOREACH kind IN ARRAY ARRAY['text', 'varchar', 'json', 'jsonb', 'bytea'] LOOP
        FOR pair IN SELECT * FROM toastrack.casts_in(kind) AS c WHERE NOT c.present LOOP
            IF pair.same_bytes THEN
                EXECUTE format('CREATE CAST (%s AS toastrack.%I) WITHOUT FUNCTION AS ASSIGNMENT', pair.other, kind);
            ELSE
                function_name := format('toastrack.%I', 'to_' || kind);
                EXECUTE format('CREATE OR REPLACE FUNCTION %s(%s) RETURNS toastrack.%I LANGUAGE sql %s PARALLEL SAFE '
                    'RETURN $1::pg_catalog.%I::toastrack.%I', function_name, pair.other, kind, pair.volatility, kind, kind);
                EXECUTE format('CREATE CAST (%s AS toastrack.%I) WITH FUNCTION %s(%s) AS ASSIGNMENT',
                    pair.other, kind, function_name, pair.other);
            END IF;
            made := made + 1;
        END LOOP;
        FOR pair IN SELECT * FROM toastrack.casts_out(kind) AS c WHERE NOT c.present LOOP
            function_name := format('toastrack.%I', 'as_' || pair.short_name);
            EXECUTE format('CREATE OR REPLACE FUNCTION %s(toastrack.%I) RETURNS %s LANGUAGE sql %s PARALLEL SAFE '
                'RETURN toastrack.detoast($1)::%s', function_name, kind, pair.other, pair.volatility, pair.other);
            EXECUTE format('CREATE CAST (toastrack.%I AS %s) WITH FUNCTION %s(toastrack.%I) %s',
                kind, pair.other, function_name, kind, pair.context);
            made := made + 1;
        END LOOP;
    END LOOP;
    RETURN made;
END
$function$;
REVOKE ALL ON FUNCTION toastrack.create_casts() FROM PUBLIC;

-- The casts into toastrack.<kind> that there should be: from every type that has a cast of its own
-- to the plain type. Anything else converts through its output text, as
-- it does for the plain type.
CREATE FUNCTION toastrack.casts_in(kind pg_catalog.text)
    RETURNS TABLE (other pg_catalog.text, same_bytes pg_catalog.bool, volatility pg_catalog.text, present pg_catalog.bool)
    LANGUAGE sql STABLE
    SET search_path = pg_catalog, pg_temp AS $function$
    SELECT format('pg_catalog.%I', s.typname),
           c.castmethod = 'b',
           CASE WHEN COALESCE(f.provolatile, 'i') = 'i' THEN 'IMMUTABLE' ELSE 'STABLE' END,
           EXISTS (SELECT FROM pg_cast AS have
                   WHERE have.castsource = s.oid AND have.casttarget = ('toastrack.' || quote_ident(kind))::regtype)
    FROM pg_type AS p
    JOIN pg_type AS s ON true
    JOIN pg_cast AS c ON c.castsource = s.oid AND c.casttarget = p.oid
    LEFT JOIN pg_proc AS f ON f.oid = c.castfunc
    WHERE p.oid = ('pg_catalog.' || quote_ident(kind))::regtype
      AND s.oid <> p.oid
      AND s.typnamespace = 'pg_catalog'::regnamespace
      AND s.typname NOT LIKE 'pg\_%'
$function$;

-- The casts out of toastrack.<kind> that there should be. Types of pg_catalog, and string types
-- of extensions (citext), which an assignment would otherwise fill with the reference's text.
-- Types that users made are left alone: a cast would stand in the way of DROP TYPE; they convert
-- through text, and a reference's text is no valid input for an enum or a composite.
--
-- No cast from the two string kinds to json: it would also be what row_to_json uses, which
-- has to quote where the cast has to parse (docs/semantics.md).
CREATE FUNCTION toastrack.casts_out(kind pg_catalog.text)
    RETURNS TABLE (other pg_catalog.text, short_name pg_catalog.text, context pg_catalog.text,
                   volatility pg_catalog.text, present pg_catalog.bool)
    LANGUAGE sql STABLE
    SET search_path = pg_catalog, pg_temp AS $function$
    SELECT
           -- not format_type(): a cast to "character" would mean character(1)
           format('%I.%I', n.nspname, t.typname),
           t.typname::text,
           CASE WHEN c.castcontext = 'i' AND t.typname IN ('text', 'varchar') THEN 'AS IMPLICIT'
                WHEN c.castcontext IN ('i', 'a') THEN 'AS ASSIGNMENT'
                WHEN c.oid IS NULL AND t.typcategory = 'S' THEN 'AS ASSIGNMENT'
                ELSE '' END,
           CASE WHEN COALESCE(f.provolatile, i.provolatile) = 'i' OR c.castmethod = 'b' THEN 'IMMUTABLE' ELSE 'STABLE' END,
           EXISTS (SELECT FROM pg_cast AS have
                   WHERE have.castsource = ('toastrack.' || quote_ident(kind))::regtype AND have.casttarget = t.oid)
    FROM pg_type AS p
    JOIN pg_type AS t ON true
    JOIN pg_namespace AS n ON n.oid = t.typnamespace
    JOIN pg_proc AS i ON i.oid = t.typinput
    LEFT JOIN pg_cast AS c ON c.castsource = p.oid AND c.casttarget = t.oid
    LEFT JOIN pg_proc AS f ON f.oid = c.castfunc
    WHERE p.oid = ('pg_catalog.' || quote_ident(kind))::regtype
      AND t.typtype IN ('b', 'r', 'm')
      AND t.typisdefined
      AND t.typnamespace <> 'toastrack'::regnamespace
      AND (t.typnamespace = 'pg_catalog'::regnamespace OR (t.typcategory = 'S' AND t.typtype = 'b'))
      AND t.oid <> p.oid
      AND (c.oid IS NOT NULL OR p.typcategory = 'S' OR t.typcategory = 'S')
      -- types of the server's own catalogs and their arrays
      AND t.typname NOT LIKE 'pg\_%' AND t.typname NOT LIKE '\_pg\_%' AND t.typname NOT IN ('gtsvector', '_gtsvector')
      AND t.typrelid = 0
      AND NOT EXISTS (SELECT FROM pg_type AS e WHERE e.oid = t.typelem AND t.typcategory = 'A' AND e.typtype NOT IN ('b', 'r', 'm'))
      AND NOT (p.typcategory = 'S' AND t.typname = 'json')
$function$;

-- A toastrack.varchar(n): the length in characters is checked as for the plain type, and a
-- reference answers for its value, whose length it carries. Only a value that is too long is read,
-- to see whether what is too much are blanks. The support function is the plain type's: it drops
-- the check where the length does not shrink, so that widening a column rewrites nothing.
CREATE FUNCTION toastrack.fit_varchar_plain(toastrack.varchar, pg_catalog.int4, pg_catalog.bool) RETURNS toastrack.varchar
    LANGUAGE internal IMMUTABLE STRICT PARALLEL SAFE AS 'varchar';
CREATE FUNCTION toastrack.fit_varchar_reference(value toastrack.varchar, type_modifier pg_catalog.int4, explicit pg_catalog.bool)
    RETURNS toastrack.varchar
    LANGUAGE plpgsql IMMUTABLE STRICT PARALLEL SAFE AS $function$
DECLARE
    fields CONSTANT pg_catalog.bytea := toastrack.reference_fields(toastrack.spelling(value));
BEGIN
    IF type_modifier OPERATOR(pg_catalog.<) 4 OR toastrack.u32(fields, 18) OPERATOR(pg_catalog.<=) (type_modifier OPERATOR(pg_catalog.-) 4) THEN
        RETURN value;
    END IF;
    RETURN toastrack.fit_varchar_plain(toastrack.detoast(value)::toastrack.varchar, type_modifier, explicit);
END
$function$;
CREATE FUNCTION toastrack.fit_varchar(toastrack.varchar, pg_catalog.int4, pg_catalog.bool) RETURNS toastrack.varchar
    LANGUAGE sql IMMUTABLE PARALLEL SAFE
    SUPPORT pg_catalog.varchar_support
    RETURN CASE WHEN toastrack.looks_like_reference($1)
        THEN toastrack.fit_varchar_reference($1, $2, $3)
        ELSE toastrack.fit_varchar_plain($1, $2, $3) END;
CREATE CAST (toastrack.varchar AS toastrack.varchar) WITH FUNCTION toastrack.fit_varchar(toastrack.varchar, pg_catalog.int4, pg_catalog.bool) AS IMPLICIT;

SELECT toastrack.create_casts();

-- Between the types. The two string types share the spelling of references and may hold each
-- other's; all other ways read the value. Both ways are implicit, as for the plain types: what
-- coalesce, CASE and UNION make of the two depends on it.
CREATE CAST (toastrack.varchar AS toastrack.text) WITHOUT FUNCTION AS IMPLICIT;
CREATE CAST (toastrack.text AS toastrack.varchar) WITHOUT FUNCTION AS IMPLICIT;
DO $between$
DECLARE
    source pg_catalog.text;
    target pg_catalog.text;
BEGIN
    FOR source, target IN
        SELECT s.kind, t.kind
        FROM (VALUES ('text'), ('varchar'), ('json'), ('jsonb'), ('bytea')) AS s (kind),
             (VALUES ('text'), ('varchar'), ('json'), ('jsonb'), ('bytea')) AS t (kind)
        WHERE s.kind <> t.kind
          AND NOT (s.kind IN ('text', 'varchar') AND t.kind IN ('text', 'varchar'))
          -- there is no such way between the plain types
          AND NOT (s.kind IN ('json', 'jsonb') AND t.kind = 'bytea') AND NOT (s.kind = 'bytea' AND t.kind IN ('json', 'jsonb'))
    LOOP
        EXECUTE pg_catalog.format('CREATE FUNCTION toastrack.%I(toastrack.%I) RETURNS toastrack.%I LANGUAGE sql IMMUTABLE PARALLEL SAFE '
            'RETURN toastrack.detoast($1)::pg_catalog.%I::toastrack.%I',
            'to_' || target, source, target, target, target);
        EXECUTE pg_catalog.format('CREATE CAST (toastrack.%I AS toastrack.%I) WITH FUNCTION toastrack.%I(toastrack.%I) %s',
            source, target, 'to_' || target, source,
            -- as willing as between the plain types
            CASE WHEN source IN ('json', 'jsonb') AND target IN ('json', 'jsonb') THEN 'AS ASSIGNMENT'
                 WHEN target IN ('text', 'varchar') THEN 'AS ASSIGNMENT'
                 ELSE '' END);
    END LOOP;
END
$between$;

-- Hands a column through for ALTER ... TYPE ... USING without the rewrite that a cast with a
-- function, or a length, would cost: the support function (varchar's own) replaces the call by
-- its first argument while the statement is planned. If it were ever run, it would hand its
-- argument through just the same.
CREATE FUNCTION toastrack.relabel(pg_catalog.text, pg_catalog.int4, pg_catalog.bool) RETURNS toastrack.text
    LANGUAGE internal IMMUTABLE STRICT PARALLEL SAFE SUPPORT pg_catalog.varchar_support AS 'int8up';
CREATE FUNCTION toastrack.relabel(pg_catalog.varchar, pg_catalog.int4, pg_catalog.bool) RETURNS toastrack.varchar
    LANGUAGE internal IMMUTABLE STRICT PARALLEL SAFE SUPPORT pg_catalog.varchar_support AS 'int8up';
CREATE FUNCTION toastrack.relabel(pg_catalog.json, pg_catalog.int4, pg_catalog.bool) RETURNS toastrack.json
    LANGUAGE internal IMMUTABLE STRICT PARALLEL SAFE SUPPORT pg_catalog.varchar_support AS 'int8up';
CREATE FUNCTION toastrack.relabel(pg_catalog.jsonb, pg_catalog.int4, pg_catalog.bool) RETURNS toastrack.jsonb
    LANGUAGE internal IMMUTABLE STRICT PARALLEL SAFE SUPPORT pg_catalog.varchar_support AS 'int8up';
CREATE FUNCTION toastrack.relabel(pg_catalog.bytea, pg_catalog.int4, pg_catalog.bool) RETURNS toastrack.bytea
    LANGUAGE internal IMMUTABLE STRICT PARALLEL SAFE SUPPORT pg_catalog.varchar_support AS 'int8up';
CREATE FUNCTION toastrack.relabel(toastrack.text, pg_catalog.int4, pg_catalog.bool) RETURNS pg_catalog.text
    LANGUAGE internal IMMUTABLE STRICT PARALLEL SAFE SUPPORT pg_catalog.varchar_support AS 'int8up';
CREATE FUNCTION toastrack.relabel(toastrack.varchar, pg_catalog.int4, pg_catalog.bool) RETURNS pg_catalog.varchar
    LANGUAGE internal IMMUTABLE STRICT PARALLEL SAFE SUPPORT pg_catalog.varchar_support AS 'int8up';
CREATE FUNCTION toastrack.relabel(toastrack.json, pg_catalog.int4, pg_catalog.bool) RETURNS pg_catalog.json
    LANGUAGE internal IMMUTABLE STRICT PARALLEL SAFE SUPPORT pg_catalog.varchar_support AS 'int8up';
CREATE FUNCTION toastrack.relabel(toastrack.jsonb, pg_catalog.int4, pg_catalog.bool) RETURNS pg_catalog.jsonb
    LANGUAGE internal IMMUTABLE STRICT PARALLEL SAFE SUPPORT pg_catalog.varchar_support AS 'int8up';
CREATE FUNCTION toastrack.relabel(toastrack.bytea, pg_catalog.int4, pg_catalog.bool) RETURNS pg_catalog.bytea
    LANGUAGE internal IMMUTABLE STRICT PARALLEL SAFE SUPPORT pg_catalog.varchar_support AS 'int8up';
