//! UDP transport: queries are received and answered in batches.

pub mod batch;
pub mod peer;
pub mod worker;

pub use batch::Batch;
pub use peer::Peer;
pub use worker::{SlowPathQuery, Worker};
