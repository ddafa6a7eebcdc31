//! The only code that touches the kernel or other processes.
//!
//! Each interface of the kernel is a `Backend`: a map that can be read, and entries that can be put and removed.
//! One generic `step` compares it with what the plan wants. Nothing here decides what to want.

pub mod address;
pub mod backend;
pub mod bpf;
pub mod conntrack;
pub mod fake_backend;
pub mod link;
pub mod neighbour;
pub mod netlink;
pub mod nft;
pub mod observe;
pub mod openvpn;
pub mod proxy;
pub mod required_programs;
pub mod rlimit;
pub mod route;
pub mod rule;
pub mod sync;
pub mod sysctl;
pub mod tcp_probe;
pub mod time_sync;
pub mod transport;
pub mod wireguard;

pub use backend::{Backend, DriftEntry, Failure, Outcome};
pub use netlink::Netlink;
pub use sync::{Memory, Pass, sync};
