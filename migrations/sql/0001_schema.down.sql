DROP TABLE toastrack.column_settings, toastrack.resolver, toastrack.config, toastrack.migrations;
DROP SCHEMA toastrack;
