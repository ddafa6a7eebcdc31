//! A mesh of the Tailscale protocol (ts2021, DERP, STUN, disco), both halves of it. The coordinator: stock clients register by
//! pre-auth keys, learn about each other, and reach each other directly or by the relay. The member: a client of any
//! coordinator, with the map of the mesh, its packet filter, and the paths to its peers.
//!
//! All modules but `serve` and `client` do no I/O. What the coordinator keeps goes through a [`Ledger`]. Decision 0211 says
//! why the daemon has a coordinator of its own, and 0215 why it is a member by its own codecs.

mod addresses;
mod attempts;
mod auth_key;
pub mod client;
mod coordinator;
pub mod derp;
pub mod disco;
mod keys;
mod map_frame;
mod netmap;
pub mod network_map;
mod node;
pub mod noise;
mod noise_stream;
pub mod packet_filter;
pub mod paths;
mod roster;
pub mod serve;
pub mod stun;
pub mod wire;

pub use auth_key::{AuthKey, AuthKeyError, AuthKeyTerms};
pub use coordinator::{Change, Clock, Coordinator, Ledger, LedgerError, Member, Settings};
pub use keys::{DiscoKey, KeyPair, MachineKey, NodeKey};
pub use map_frame::{MapFrameError, MapReader};
pub use netmap::MeshProfile;
pub use node::{Node, Presence};
pub use roster::{Lifetimes, Roster};
