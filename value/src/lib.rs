//! Postgres values as bytes: canonical jsonb, bytea text, array elements, COPY escapes
