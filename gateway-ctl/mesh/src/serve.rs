//! The sockets of the coordinator: HTTP with its upgrades to control sessions and the relay, and STUN.

mod admission;
mod control;
mod http_routes;
mod relay;
mod stun_socket;

pub use admission::{Admission, Admitted};
pub use http_routes::serve_connection;
pub use stun_socket::serve_stun;
