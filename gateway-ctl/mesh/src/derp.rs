//! The relay (DERP): nodes without a direct path exchange their encrypted packets through it.

pub mod frame;
pub mod introduction;
mod switch;

pub use switch::{Attachment, RelayCounters, Switch};
