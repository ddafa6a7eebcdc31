//! The section `countries` of the configuration file.

use std::path::PathBuf;

use serde::{Deserialize, Serialize};

use crate::problem::{Problems, code};

/// Countries of addresses.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Countries {
    /// File in the MaxMind DB format. Without it, no country is known.
    pub database: Option<PathBuf>,
}

impl Countries {
    pub(super) fn validate(&self, problems: &mut Problems) {
        if self.database.as_ref().is_some_and(|path| !path.is_absolute()) {
            problems.add(code::FORMAT, "countries.database", "Expected an absolute path.");
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::parse;

    #[test]
    fn database_of_countries_has_an_absolute_path() {
        let parsed = parse("countries: { database: /var/lib/countries.mmdb }").expect("valid");
        assert!(parsed.countries.database.is_some());
        let errors = parse("countries: { database: countries.mmdb }").expect_err("refused");
        assert_eq!(
            errors.iter().map(|error| error.path.as_str()).collect::<Vec<_>>(),
            ["countries.database"]
        );
    }
}
