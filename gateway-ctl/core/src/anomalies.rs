//! Anomalies in the traffic of devices: what a device does is compared with what it did before at the same hour.
//!
//! A sans-I/O engine: observations come in with their time, and findings come out. A device has at most 64 KiB. What is not
//! observed is never an anomaly.
//!
//! Decision 0202 says why.

mod baseline;
mod destinations;
mod engine;
mod finding;
mod flows;
mod names;
mod observation_source;
mod profile;
mod queries;
mod report;
mod sets;

pub use baseline::{Baseline, BaselineBasis, HOURS, Samples};
pub use engine::{AnomalyEngine, AnomalySettings, Clock, Stored};
pub use finding::{Anomaly, AnomalyFilter, AnomalyWindow};
pub use flows::FlowSeen;
pub use observation_source::ObservationSource;
pub use profile::Profile;
pub use queries::QuerySeen;
pub use report::{AnomalyKindState, AnomalyStats, Missed};
pub use sets::MAX_FLOWS;

#[cfg(test)]
mod tests;
