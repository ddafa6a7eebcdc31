//! The coordinator of a mesh: stock clients of the Tailscale protocol (ts2021, DERP, STUN) register by pre-auth keys, learn
//! about each other, and reach each other directly or by the relay.
//!
//! All modules but `serve` do no I/O. What the coordinator keeps goes through a [`Ledger`]. Decision 0211 says why the
//! daemon has a coordinator of its own.

mod addresses;
mod attempts;
mod auth_key;
mod coordinator;
pub mod derp;
mod keys;
mod map_frame;
mod netmap;
mod node;
pub mod noise;
mod roster;
pub mod serve;
pub mod stun;
pub mod wire;

pub use auth_key::{AuthKey, AuthKeyError, AuthKeyTerms};
pub use coordinator::{Change, Clock, Coordinator, Ledger, LedgerError, Member, Settings};
pub use keys::{KeyPair, MachineKey, NodeKey};
pub use netmap::MeshProfile;
pub use node::{Node, Presence};
pub use roster::{Lifetimes, Roster};
