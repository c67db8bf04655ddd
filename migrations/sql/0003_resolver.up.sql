-- Asking the sidecar's resolver, over dblink: one named connection a session, which is opened at
-- the first reference that the server cannot read by itself.
--
-- Only replaces, and is run by every install: the schema of the extension dblink, which may be
-- moved, is written into the functions.
--
-- No EXCEPTION block is reached on servers before 17: it needs a subtransaction, which those
-- servers refuse while a parallel query runs.

-- Opens the session's one connection to the resolver.
CREATE OR REPLACE FUNCTION toastrack.connect_to_resolver() RETURNS void
    LANGUAGE plpgsql VOLATILE PARALLEL SAFE AS $function$
DECLARE
    address pg_catalog.text;
BEGIN
    SELECT conninfo INTO address FROM toastrack.resolver;
    IF address IS NULL THEN
        RAISE EXCEPTION 'a value of an offloaded column cannot be read: no resolver is registered in this database'
            USING ERRCODE = '58030',
                  HINT = 'Start "toastrack serve" once with its [control] user allowed to register it, or run "toastrack install" with the resolver''s address.';
    END IF;
    -- A subtransaction is refused during a parallel query before version 17; there the
    -- connection error (08001) stands as dblink raises it.
    IF pg_catalog.current_setting('server_version_num')::pg_catalog.int4 OPERATOR(pg_catalog.<) 170000 THEN
        PERFORM @dblink@.dblink_connect('toastrack_resolver', address);
        RETURN;
    END IF;
    BEGIN
        PERFORM @dblink@.dblink_connect('toastrack_resolver', address);
    EXCEPTION WHEN sqlclient_unable_to_establish_sqlconnection THEN
        RAISE EXCEPTION 'a value of an offloaded column cannot be read: the resolver cannot be reached'
            USING ERRCODE = '58030',
                  DETAIL = SQLERRM,
                  HINT = 'Check that "toastrack serve" runs and that its [resolver] address and secret are those that were registered in this database.';
    END;
END
$function$;
REVOKE ALL ON FUNCTION toastrack.connect_to_resolver() FROM PUBLIC;

-- The value of a reference, from the resolver; NULL when it says that this is no reference of
-- its store. One attempt on the session's connection, one on a new one; what then still fails
-- is raised with the resolver's own SQLSTATE, message and detail.
CREATE OR REPLACE FUNCTION toastrack.value_from_resolver(spelled pg_catalog.text) RETURNS pg_catalog.bytea
    LANGUAGE plpgsql VOLATILE PARALLEL SAFE AS $function$
DECLARE
    question CONSTANT pg_catalog.text :=
        'select toastrack.resolve(' OPERATOR(pg_catalog.||) pg_catalog.quote_literal(spelled) OPERATOR(pg_catalog.||) ')';
    answer pg_catalog.bytea;
    connected pg_catalog.bool :=
        COALESCE('toastrack_resolver' OPERATOR(pg_catalog.=) ANY (@dblink@.dblink_get_connections()), false);
BEGIN
    FOR attempt IN 1 .. 2 LOOP
        IF NOT connected THEN
            PERFORM toastrack.connect_to_resolver();
        END IF;
        SELECT a.value INTO answer FROM @dblink@.dblink('toastrack_resolver', question, false) AS a (value pg_catalog.bytea);
        IF FOUND THEN
            RETURN answer;
        END IF;
        IF @dblink@.dblink_error_message('toastrack_resolver')
            OPERATOR(pg_catalog.~~) '%not a reference of this store%' THEN
            RETURN NULL;
        END IF;
        EXIT WHEN NOT connected;
        PERFORM @dblink@.dblink_disconnect('toastrack_resolver');
        connected := false;
    END LOOP;
    SELECT a.value INTO answer FROM @dblink@.dblink('toastrack_resolver', question, true) AS a (value pg_catalog.bytea);
    RETURN answer;
END
$function$;
REVOKE ALL ON FUNCTION toastrack.value_from_resolver(pg_catalog.text) FROM PUBLIC;

-- Where install made the extension, for these functions alone: whoever can name the session's
-- connection could close it and put another server's answers in its place.
DO $dblink$
DECLARE
    item pg_catalog.record;
BEGIN
    FOR item IN
        SELECT p.oid::pg_catalog.regprocedure AS signature
        FROM pg_catalog.pg_extension AS e
        JOIN pg_catalog.pg_depend AS d ON d.refclassid = 'pg_catalog.pg_extension'::pg_catalog.regclass AND d.refobjid = e.oid
            AND d.classid = 'pg_catalog.pg_proc'::pg_catalog.regclass AND d.deptype = 'e'
        JOIN pg_catalog.pg_proc AS p ON p.oid = d.objid
        WHERE e.extname = 'dblink' AND e.extnamespace = 'toastrack'::pg_catalog.regnamespace
    LOOP
        EXECUTE pg_catalog.format('REVOKE ALL ON FUNCTION %s FROM PUBLIC', item.signature);
    END LOOP;
END
$dblink$;
