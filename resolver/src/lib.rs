//! The Postgres-protocol endpoint that answers `toastrack.detoast` for the server.
