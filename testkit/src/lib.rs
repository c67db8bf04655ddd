//! Private Postgres clusters and scripted frontends for tests and the demo
