//! What the resolver answers and why: names, filters, zones. Never how: nothing here knows of sockets or caches.

pub mod decision;
pub mod filter;
pub mod lists;
pub mod name;
pub mod name_map;
pub mod nets;
pub mod rtype;
pub mod table;
pub mod zones;

pub use decision::{Action, Asker, Because, Cause, Decision, Local, Question, Record};
pub use name::{Name, NameRef};
