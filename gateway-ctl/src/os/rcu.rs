//! Expedited RCU grace periods (kernel document RCU/checklist; `/sys/kernel/rcu_expedited`).
//!
//! The kernel waits for a grace period at each attachment to a tcx hook, under a lock of all interfaces, and the daemon
//! waits for one at each apply. A normal one takes 10 to 20 ms, so a gateway with 20 tunnels would need more than half
//! a second for its attachments. An expedited one gives the same guarantee within microseconds, but interrupts all
//! CPUs.
//!
//! Rejected: attachments in parallel, because the kernel holds the lock while it waits; tunnels that are attached after
//! the API listens, because a plan would then be in force before its guards. A daemon that is killed in between leaves
//! the setting at 1 until the next boot.

use std::path::{Path, PathBuf};

const SETTING: &str = "/sys/kernel/rcu_expedited";
const NORMAL: &str = "0";
const EXPEDITED: &str = "1";

/// While it exists, grace periods are expedited. If the setting cannot be written, they stay as they are.
#[derive(Debug)]
pub(crate) struct ExpeditedGracePeriods {
    /// File of the setting, if this value changed it.
    changed: Option<PathBuf>,
}

impl ExpeditedGracePeriods {
    pub(crate) fn begin() -> ExpeditedGracePeriods {
        ExpeditedGracePeriods::at(Path::new(SETTING))
    }

    fn at(setting: &Path) -> ExpeditedGracePeriods {
        // The administrator may have set it for good.
        let is_normal = std::fs::read_to_string(setting).is_ok_and(|value| value.trim() == NORMAL);
        let is_changed = is_normal && std::fs::write(setting, EXPEDITED).is_ok();
        ExpeditedGracePeriods { changed: is_changed.then(|| setting.to_owned()) }
    }
}

impl Drop for ExpeditedGracePeriods {
    fn drop(&mut self) {
        if let Some(setting) = &self.changed
            && let Err(error) = std::fs::write(setting, NORMAL)
        {
            tracing::warn!(%error, "failed to restore normal RCU grace periods");
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_setting_is_changed_for_a_time_only() {
        let folder = tempfile::tempdir().expect("a folder");
        let setting = folder.path().join("rcu_expedited");
        let value = || std::fs::read_to_string(&setting).expect("the setting").trim().to_owned();
        std::fs::write(&setting, "0\n").expect("written");
        let expedited = ExpeditedGracePeriods::at(&setting);
        assert_eq!(value(), EXPEDITED);
        drop(ExpeditedGracePeriods::at(&setting));
        assert_eq!(value(), EXPEDITED, "the first one still exists");
        drop(expedited);
        assert_eq!(value(), NORMAL);
    }

    #[test]
    fn a_setting_of_the_administrator_stays() {
        let folder = tempfile::tempdir().expect("a folder");
        let setting = folder.path().join("rcu_expedited");
        drop(ExpeditedGracePeriods::at(&setting));
        assert!(!setting.exists(), "a kernel without the setting");
        std::fs::write(&setting, "1\n").expect("written");
        drop(ExpeditedGracePeriods::at(&setting));
        assert_eq!(std::fs::read_to_string(&setting).expect("the setting"), "1\n");
    }
}
