//! Dead-man switch at run time: settings and check-ins from the store, time from the clocks, warnings to the log.

use std::sync::Arc;
use std::time::Duration;

use gateway_core::state_machines::deadman::{Action, CheckIn, Deadman, Now, WARN_AT};
use gateway_model::settings::group::Group;
use gateway_model::settings::groups::{DeadmanSettings, WipeLevel};
use jiff::{SignedDuration, Timestamp};
use parking_lot::Mutex;

use crate::store::{Error, Store};

/// Interval between two calls of [`DeadManSwitch::tick`].
pub const POLL_INTERVAL: Duration = Duration::from_secs(10);
/// Interval between two writes of the check-in. After a crash, the stored check-in may be this much too old.
const SAVE_EVERY: SignedDuration = SignedDuration::from_secs(60);

/// Dead-man switch of one store.
pub struct DeadManSwitch {
    store: Arc<Store>,
    synced: fn() -> bool,
    held: Mutex<SavedCheckIn>,
}

struct SavedCheckIn {
    machine: Deadman,
    settings: DeadmanSettings,
    saved: Option<CheckIn>,
    warned: Option<u8>,
}

/// Status of the dead-man switch.
#[derive(Clone, Debug, PartialEq)]
pub struct Report {
    pub settings: DeadmanSettings,
    pub last_checkin: Option<Timestamp>,
    pub deadline: Option<Timestamp>,
    /// Times of the warnings, in hours after the last check-in.
    pub warn_hours: Vec<f64>,
    /// Threshold of the last warning: elapsed share of the time limit, in percent.
    pub warned: Option<u8>,
    /// Synchronisation state of the wall clock. The switch does not fire while it is `false`.
    pub clock_synced: bool,
}

impl DeadManSwitch {
    /// Creates the switch. `synced` reports whether the wall clock is right.
    pub fn new(store: Arc<Store>, synced: fn() -> bool) -> Result<DeadManSwitch, Error> {
        let check_in = store.check_in()?;
        let switch = DeadManSwitch {
            synced,
            held: Mutex::new(SavedCheckIn {
                machine: Deadman::new(check_in),
                settings: DeadmanSettings { enabled: false, ..DeadmanSettings::default() },
                saved: check_in,
                warned: None,
            }),
            store,
        };
        switch.follow(&mut switch.held.lock())?;
        Ok(switch)
    }

    /// Reports whether the switch was ever configured. Costs next to nothing.
    pub fn is_set(&self) -> bool {
        self.store.current().settings.setting(DeadmanSettings::KEY).is_some()
    }

    /// Records a check-in of an administrator.
    pub fn check_in(&self) -> Result<(), Error> {
        let mut held = self.held.lock();
        self.follow(&mut held)?;
        if !held.settings.enabled {
            return Ok(());
        }
        held.warned = None;
        let check_in = held.machine.handle_check_in(self.now());
        let due = held.saved.is_none_or(|saved| {
            let since = check_in.at.duration_since(saved.at);
            since >= SAVE_EVERY || since.is_negative() || saved.certain != check_in.certain
        });
        if due { self.save(&mut held, check_in) } else { Ok(()) }
    }

    /// Advances the switch; call it every [`POLL_INTERVAL`]. Returns the wipe level once, when the switch fires.
    pub fn tick(&self) -> Result<Option<WipeLevel>, Error> {
        let mut held = self.held.lock();
        self.follow(&mut held)?;
        match held.machine.poll(self.now()) {
            Some(Action::Fire) => {
                tracing::error!(level = %held.settings.level, "no check-in: the dead-man switch wipes this gateway");
                Ok(Some(held.settings.level))
            }
            Some(Action::Warn(percent)) => {
                held.warned = Some(percent);
                let deadline = held.machine.deadline(self.now()).map(|at| at.to_string());
                tracing::warn!(percent, deadline, "no check-in: the dead-man switch will wipe this gateway");
                Ok(None)
            }
            Some(Action::Keep(check_in)) => self.save(&mut held, check_in).map(|()| None),
            None => Ok(None),
        }
    }

    pub fn report(&self) -> Result<Report, Error> {
        let mut held = self.held.lock();
        self.follow(&mut held)?;
        let now = self.now();
        let hours = held.settings.hours;
        Ok(Report {
            last_checkin: held.machine.check_in().map(|check_in| check_in.at),
            deadline: held.machine.deadline(now),
            warn_hours: WARN_AT.iter().map(|percent| f64::from(*percent) * hours as f64 / 100.0).collect(),
            warned: held.warned,
            clock_synced: now.synced,
            settings: held.settings.clone(),
        })
    }

    /// Applies the settings if they changed.
    fn follow(&self, held: &mut SavedCheckIn) -> Result<(), Error> {
        let settings: DeadmanSettings = self.store.current().group();
        if settings == held.settings {
            return Ok(());
        }
        let period = settings
            .enabled
            .then(|| Duration::from_secs(3600) * u32::try_from(settings.hours).unwrap_or(u32::MAX));
        held.settings = settings;
        held.warned = None;
        match held.machine.handle_period(period, self.now()) {
            Some(Action::Keep(check_in)) => self.save(held, check_in),
            _ => Ok(()),
        }
    }

    fn save(&self, held: &mut SavedCheckIn, check_in: CheckIn) -> Result<(), Error> {
        self.store.keep_check_in(check_in)?;
        held.saved = Some(check_in);
        Ok(())
    }

    fn now(&self) -> Now {
        let clock = self.store.clock();
        Now { wall: clock.now(), boot: clock.boot(), synced: (self.synced)() }
    }
}

#[cfg(test)]
mod tests;
