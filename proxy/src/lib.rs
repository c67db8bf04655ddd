//! Sockets, sessions, interception, resolver
