//! Highest time that a run of the daemon saw, for the store to keep.

use std::fmt;
use std::str::FromStr;
use std::time::Duration;

use jiff::Timestamp;

/// Wall-clock time and the boot time at which it was seen.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HighTime {
    pub wall: Timestamp,
    pub boot: Duration,
    pub boot_id: String,
}

impl fmt::Display for HighTime {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {} {}", self.wall.as_microsecond(), self.boot.as_micros(), self.boot_id)
    }
}

/// Parse error: the text is not a [`HighTime`].
#[derive(Debug, thiserror::Error)]
#[error("not a time of the store")]
pub struct InvalidHighTime;

impl FromStr for HighTime {
    type Err = InvalidHighTime;

    fn from_str(text: &str) -> Result<HighTime, InvalidHighTime> {
        let mut parts = text.splitn(3, ' ');
        let mut next = || parts.next().ok_or(InvalidHighTime);
        let wall = next()?.parse().map_err(|_| InvalidHighTime)?;
        let boot = next()?.parse().map_err(|_| InvalidHighTime)?;
        Ok(HighTime {
            wall: Timestamp::from_microsecond(wall).map_err(|_| InvalidHighTime)?,
            boot: Duration::from_micros(boot),
            boot_id: next()?.to_owned(),
        })
    }
}
