//! UDP transport: queries are received and answered in batches.

pub(crate) mod batch;
pub(crate) mod peer;
pub(crate) mod worker;

pub(crate) use worker::{SlowPathQuery, Worker};
