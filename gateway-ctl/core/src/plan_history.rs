//! History of plans: the inputs of each plan that was in force, so that a decision of then is made again by the same
//! function.
//!
//! A plan is far larger than the change of state and facts that led to it, and follows from them. So a record has the
//! inputs that changed since the one before, a whole record has all, and the plan is compiled again. The digest of the plan
//! that was in force tells whether it is the same.
//!
//! Decision 0201 says why.

mod digest;
mod facts;
mod inputs;
mod parts;
mod record;
mod timeline;

pub use digest::digest;
pub use inputs::PlanInputs;
pub use parts::{Part, Parts, RestoreError};
pub use record::{Content, MAX_PAYLOAD, PlanRecord, RecordHeader, decode_parts, encode_part};
pub use timeline::{Entry, InForce, NotKept, Timeline};

#[cfg(test)]
mod tests;
