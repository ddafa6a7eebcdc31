//! Scheduled backups: times, content, target.

use croner::Cron;
use croner::parser::{CronParser, Seconds, Year};
use jiff::tz::TimeZone;
use jiff::{Timestamp, Zoned};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::check_range;
use crate::destination::Destination;
use crate::problem::{Problems, code};
use crate::secret::Secret;
use crate::settings::group::Group;
use crate::state::State;
use crate::validated::text_enum;

mod target;

pub use target::{BackupTarget, TargetType, host_key_fingerprint};

/// Minimum length of passphrases of exports and backups.
pub const PASSPHRASE_MIN: usize = 12;
/// No schedule needs more characters.
const SCHEDULE_MOST: usize = 200;

text_enum! {
    /// Parts of a backup.
    pub enum Include {
        /// All objects and settings, with their secrets; no accounts.
        Config = "config",
        /// Not supported by this version.
        History = "history",
        /// Not supported by this version.
        Leases = "leases",
    }
}

/// Schedule, content and retention of backups.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct BackupConfig {
    pub enabled: bool,
    /// Five fields of cron (minute, hour, day, month, weekday) by the clock and time zone of the machine.
    pub schedule: String,
    /// Number of this gateway's backups to keep at the target, 1 to 1000.
    #[schemars(range(min = 1, max = 1000))]
    pub retain: u64,
    pub target: BackupTarget,
    /// Passphrase that encrypts the backups, at least 12 characters. Without it a backup cannot be decrypted.
    #[serde(rename(serialize = "has_passphrase", deserialize = "passphrase"))]
    pub passphrase: Secret,
    /// This version backs up `config` only.
    pub include: Vec<Include>,
}

impl Default for BackupConfig {
    fn default() -> Self {
        Self {
            enabled: false,
            schedule: "0 3 * * *".to_owned(),
            retain: 14,
            target: BackupTarget::default(),
            passphrase: Secret::default(),
            include: vec![Include::Config],
        }
    }
}

impl BackupConfig {
    /// The first time of the schedule after this one, by the clocks of the zone.
    pub fn next_after(&self, time: Timestamp, zone: &TimeZone) -> Option<Timestamp> {
        next(&cron(&self.schedule).ok()?, &time.to_zoned(zone.clone())).ok()
    }

    /// Returns a sentence about the setting that a backup lacks.
    pub fn missing(&self) -> Option<&'static str> {
        if !self.target.is_set() {
            Some("No target is set.")
        } else if !self.passphrase.is_set() {
            Some("No passphrase is set.")
        } else if !self.passphrase.is_readable() {
            Some("The passphrase cannot be decrypted: set it again.")
        } else if self.target.secrets().iter().any(|secret| secret.is_set() && !secret.is_readable()) {
            Some("A secret of the target cannot be decrypted: set it again.")
        } else {
            None
        }
    }
}

/// Exactly five fields: seconds and years are extensions that differ between cron implementations.
fn cron(schedule: &str) -> Result<Cron, String> {
    if schedule.chars().count() > SCHEDULE_MOST {
        return Err(format!("At most {SCHEDULE_MOST} characters."));
    }
    let parser = CronParser::builder().seconds(Seconds::Disallowed).year(Year::Disallowed).build();
    parser.parse(schedule).map_err(|error| error.to_string())
}

fn next(cron: &Cron, after: &Zoned) -> Result<Timestamp, String> {
    let found = cron.find_next_occurrence(after, false);
    found.map(|next| next.timestamp()).map_err(|_| "This time never comes.".to_owned())
}

impl Group for BackupConfig {
    const KEY: &'static str = "backup.config";
    const NOUN: &'static str = "backup_config";
    const SECRETS: &'static [&'static str] = &["passphrase", "target.secret", "target.private_key"];
    const SENT_SECRETS: &'static [&'static str] = &["target.secret", "target.private_key"];
    // A target gets backups that it cannot decrypt.
    const LOCAL_SECRETS: &'static [&'static str] = &["passphrase"];

    fn validate(&self, _: &State, problems: &mut Problems) {
        let ever = Timestamp::UNIX_EPOCH.to_zoned(TimeZone::UTC);
        if let Err(error) = cron(&self.schedule).and_then(|cron| next(&cron, &ever)) {
            let message = format!("Expected five fields of cron such as \"0 3 * * *\". {error}");
            problems.add(code::FORMAT, "schedule", message);
        }
        check_range("retain", self.retain, 1..=1000, problems);
        self.target.validate(self.enabled, problems);
        if !self.passphrase.is_set() {
            if self.enabled {
                problems.required("passphrase");
            }
        } else if self.passphrase.expose().chars().count() < PASSPHRASE_MIN && self.passphrase.is_readable() {
            problems.add(code::RANGE, "passphrase", format!("At least {PASSPHRASE_MIN} characters."));
        }
        if self.include.is_empty() {
            problems.required("include");
        }
        for (index, include) in self.include.iter().enumerate() {
            if *include != Include::Config {
                problems.not_supported(format!("include[{index}]"), format!("Backing up {include}"));
            } else if self.include[..index].contains(include) {
                problems.add(code::DUPLICATE, format!("include[{index}]"), "Given twice.");
            }
        }
    }

    fn destination(&self) -> Destination {
        let BackupTarget { r#type, url, host_key, ca_certificate, .. } = &self.target;
        [
            ("target.type", r#type.to_string()),
            ("target.url", url.clone()),
            ("target.host_key", host_key.trim().to_owned()),
            ("target.ca_certificate", ca_certificate.trim().to_owned()),
        ]
        .into()
    }

    fn secrets(&mut self) -> Vec<&mut Secret> {
        vec![&mut self.passphrase, &mut self.target.secret, &mut self.target.private_key]
    }
}

#[cfg(test)]
mod tests;
