//! The only code that touches the kernel or other processes.
//!
//! Each interface of the kernel is a `Backend`: a map that can be read, and entries that can be put and removed.
//! One generic `step` compares it with what the plan wants. Nothing here decides what to want.

pub mod address;
pub mod backend;
pub mod bpf;
pub mod conntrack;
pub mod limits;
pub mod link;
pub mod mem;
pub mod neighbour;
pub mod netlink;
pub mod nft;
pub mod nudge;
pub mod observe;
pub mod openvpn;
pub mod programs;
pub mod proxy;
pub mod route;
pub mod rule;
pub mod step;
pub mod sysctl;
pub mod time_sync;
pub mod transport;
pub mod wireguard;

pub use backend::{Backend, DriftEntry, Failure, Outcome};
pub use netlink::Netlink;
pub use step::{Memory, Pass, step};
