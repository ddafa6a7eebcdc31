//! Start and stop of a systemd unit.

use super::required_programs::{self, Unit};

/// Order for a unit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum UnitOrder {
    Start,
    Stop,
}

/// Reason why a unit was not started or stopped.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum UnitError {
    #[error("systemd does not run on this host")]
    NoSystemd,
    #[error("the unit {0} is not installed")]
    NotInstalled(String),
    #[error("systemctl refused: {0}")]
    Refused(String),
}

/// Starts or stops a unit, and returns its state then. Blocks until systemd has done it.
pub fn control(name: &str, order: UnitOrder) -> Result<Unit, UnitError> {
    let before = required_programs::unit(name).ok_or(UnitError::NoSystemd)?;
    if !before.installed {
        return Err(UnitError::NotInstalled(name.to_owned()));
    }
    let verb = match order {
        UnitOrder::Start => "start",
        UnitOrder::Stop => "stop",
    };
    required_programs::control_unit(verb, name).map_err(UnitError::Refused)?;
    required_programs::unit(name).ok_or(UnitError::NoSystemd)
}
