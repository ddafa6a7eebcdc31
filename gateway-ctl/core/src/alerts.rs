//! Alerts: what producers report of the gateway becomes alerts with a life of their own.
//!
//! [`AlertEngine`] takes reports, the rules and the time, and returns changed alerts and notifications. It does no I/O.
//! A condition is something that holds or does not; an event happens at an instant. A rule decides which of them becomes an
//! alert. An alert is `active` or `acknowledged` while its condition holds, and `resolved` afterwards. A condition that
//! another alert explains is a consequence of it: it is shown below its cause and not sent.
//!
//! Decision 0195 says why.

mod alert;
mod behaviour;
mod causes;
mod condition;
mod engine;
mod key;
mod rules;
mod subject;
#[cfg(test)]
mod tests;
mod timing;

pub use alert::{Alert, AlertStatus, Announced, Notification, Record, Transition};
pub use behaviour::{Behaviour, Measure, behaviour};
pub use causes::{Causes, Dependencies};
pub use condition::Report;
pub use engine::{AlertEngine, Changes, IllegalTransition, Stored, Surroundings};
pub use key::AlertKey;
pub use rules::{ActiveRule, Rules};
pub use subject::{Subject, describe};
pub use timing::{MAX_MUTE, Now, RETENTION};
