-- The schema, what was applied to it, and its settings.

CREATE SCHEMA toastrack;

-- One row for each migration that was applied.
CREATE TABLE toastrack.migrations (
    version pg_catalog.int4 PRIMARY KEY,
    name pg_catalog.text NOT NULL,
    applied_at pg_catalog.timestamptz NOT NULL DEFAULT pg_catalog.now()
);

-- Settings that functions and the sidecar read. Known keys: store_directory.
CREATE TABLE toastrack.config (
    key pg_catalog.text PRIMARY KEY,
    value pg_catalog.text NOT NULL
);

-- How to reach the resolver. Holds a secret: readable by the owner alone.
CREATE TABLE toastrack.resolver (
    only_row pg_catalog.bool PRIMARY KEY DEFAULT true CHECK (only_row),
    conninfo pg_catalog.text NOT NULL
);

-- What was chosen for an offloaded column.
CREATE TABLE toastrack.column_settings (
    relation pg_catalog.regclass NOT NULL,
    attname pg_catalog.name NOT NULL,
    threshold_bytes pg_catalog.int4 CHECK (threshold_bytes > 0),
    PRIMARY KEY (relation, attname)
);

REVOKE ALL ON TABLE toastrack.config, toastrack.resolver FROM PUBLIC;
GRANT USAGE ON SCHEMA toastrack TO PUBLIC;
GRANT SELECT ON TABLE toastrack.migrations, toastrack.column_settings TO PUBLIC;
