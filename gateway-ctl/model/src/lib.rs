//! The types of the service: resources, their rules, and the state that holds them.
//!
//! Pure values: nothing here reads a file, a clock or the kernel. The store writes these values down,
//! the compiler lowers them to a plan, the API shows them.
#![forbid(unsafe_code)]

pub mod bulk_edit;
pub mod capability;
pub(crate) mod cow;
pub mod decode;
pub(crate) mod destination;
pub mod domain;
pub(crate) mod edit;
pub mod egress_name;
pub mod ending;
pub mod export;
pub mod field_diff;
pub mod filter;
pub mod id;
pub(crate) mod id_or_name;
pub mod kinds;
pub mod method;
pub mod ovpn;
pub mod pattern;
pub mod problem;
pub mod query_type;
pub mod record;
pub mod references;
pub mod registry;
pub mod resource;
pub(crate) mod role;
pub mod secret;
pub mod secrets;
pub mod settings;
pub mod state;
pub mod suggest;
pub(crate) mod table;
pub mod upstream;
pub mod validated;
pub mod wgconf;

pub use edit::{Attempt, Deleted, EditError, Written};
pub use id::{Id, IfName, MacAddr, Revision};
pub use kinds::{Device, DeviceGroup, RoutingPolicy, TrustClass, Tunnel};
pub use problem::{Problem, Problems, Warning};
pub use registry::{KINDS, Kind};
pub use resource::{Meta, Resource, Stored};
pub use role::Role;
pub use secret::Secret;
pub use state::State;
pub use table::Table;
