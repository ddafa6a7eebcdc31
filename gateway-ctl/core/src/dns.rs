//! What the resolver answers and why: names, filters, zones. Never how: nothing here knows of sockets or caches.

pub mod decision;
pub mod filter;
pub mod lists;
pub mod name;
pub mod nets;
pub mod rtype;
pub mod table;

pub use decision::{Action, Asker, Because, Cause, Decision, Local, Question, Record};
pub use name::{Name, NameRef};
