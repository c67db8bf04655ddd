//! The detoast cache: values by identity, one load for many waiters
