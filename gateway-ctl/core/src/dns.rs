//! Answers of the resolver and their reasons: names, filters, zones. Knows neither sockets nor caches.

pub(crate) mod address_set;
pub(crate) mod decision;
pub mod domain_set;
pub mod filter;
pub mod lists;
pub mod name;
pub(crate) mod name_map;
pub mod rebinding;
pub mod rtype;
pub mod zones;

pub use decision::{Action, Cause, ClientIdentity, Decision, Local, Question, Record, RuleSource};
pub use name::{Name, NameRef};
