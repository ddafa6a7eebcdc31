//! Federation over a hub: a NATS server with JetStream, as the fast path beside the pull.
//!
//! - [`publication`]: the signed state of one kind, as the hub keeps it, and its subject.
//! - [`inbox`]: publications of a node until they are one state of it.
//! - [`wire`]: the protocol of NATS.
//! - [`nkey`]: keys of gateways in the form of NATS.
//! - [`hub`]: the configuration and the unit of a hub.
//!
//! Decision 0209 says why the hub is not trusted, and why the pull goes on beside it.

pub mod hub;
pub mod inbox;
pub mod nkey;
pub mod publication;
pub mod wire;
