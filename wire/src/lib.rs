//! Bytes to messages of the Postgres frontend/backend protocol and back; no sockets
