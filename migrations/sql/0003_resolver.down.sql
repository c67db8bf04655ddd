DROP FUNCTION toastrack.value_from_resolver(pg_catalog.text), toastrack.connect_to_resolver();

-- dblink is dropped when install created it here; another schema's is not ours.
DO $down$
BEGIN
    IF EXISTS (SELECT FROM pg_catalog.pg_extension
               WHERE extname = 'dblink' AND extnamespace = 'toastrack'::pg_catalog.regnamespace) THEN
        DROP EXTENSION dblink;
    END IF;
END
$down$;
