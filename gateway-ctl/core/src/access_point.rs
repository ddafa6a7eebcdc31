//! Access point: the configuration of hostapd, and the replies of its control socket.
//!
//! Decision 0219 says why.

mod config_file;
mod control;

pub use config_file::config_file;
pub use control::{ApState, BssState, Station, parse_station, parse_status};

#[cfg(test)]
mod tests;
