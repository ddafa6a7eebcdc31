//! A built crate, or a package in the dashboard.

use semver::Version;

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Dependency {
    pub name: String,
    pub version: Version,
    pub license: Option<String>,
}
