//! Exposure of the packaged units, by `systemd-analyze security`.

use std::process::Command;

use anyhow::{Context, Result, ensure};

use crate::paths;

/// Highest exposure, in tenths.
const CEILING: u32 = 40;

const UNITS: [&str; 2] = ["gatewayd.service", "gatewayd-guard.service"];

/// Fails if a unit has more rights than the daemon had when the ceiling was set.
pub(crate) fn check() -> Result<()> {
    UNITS.iter().try_for_each(|unit| exposure(&paths::root().join("packaging").join(unit)))
}

fn exposure(unit: &std::path::Path) -> Result<()> {
    let mut command = Command::new("systemd-analyze");
    command.args(["security", "--offline=yes", "--no-pager", &format!("--threshold={CEILING}")]).arg(unit);
    let output = command.output().context("cannot run systemd-analyze: install systemd")?;
    let text = String::from_utf8_lossy(&output.stdout);
    let found = text.lines().rfind(|line| line.contains("Overall exposure")).unwrap_or_default().trim();
    ensure!(
        output.status.success() && !found.is_empty(),
        "{}: above {}.{}: {found} {}",
        unit.display(),
        CEILING / 10,
        CEILING % 10,
        String::from_utf8_lossy(&output.stderr)
    );
    println!("{found}");
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn packaged_units_are_below_the_ceiling_and_one_without_limits_is_not() {
        check().expect("below");
        let folder = std::env::temp_dir().join(format!("units-{}", std::process::id()));
        std::fs::create_dir_all(&folder).unwrap();
        let unit = folder.join("bare.service");
        std::fs::write(&unit, "[Service]\nExecStart=/usr/sbin/gatewayd\n").unwrap();
        let refused = exposure(&unit);
        std::fs::remove_dir_all(&folder).unwrap();
        assert!(refused.is_err());
    }
}
