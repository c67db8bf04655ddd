//! The toastrack command.
fn main() {}
