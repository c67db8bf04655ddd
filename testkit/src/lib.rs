//! Private Postgres clusters for tests, the bench harness and the demo.
//!
//! [`Cluster::start`] makes a new cluster in a directory of its own, on a free
//! port, and removes both when the value is dropped. Any number may run at
//! once. A process that is killed before it can drop its clusters leaves
//! nothing behind: a watcher process stops them in its place.

mod binaries;
mod builder;
mod cluster;
mod error;
mod os_user;
mod port;
mod watcher;

pub use binaries::ServerBinaries;
pub use builder::ClusterBuilder;
pub use cluster::Cluster;
pub use error::TestkitError;
