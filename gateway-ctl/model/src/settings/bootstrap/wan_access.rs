//! The section `listen.wan_access` of the configuration.

use serde::{Deserialize, Serialize};

use crate::problem::{Problems, code};
use crate::validated::Cidr;

const MAX_ENTRIES: usize = 64;

/// Access to the API by uplinks.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct WanAccess {
    pub enabled: bool,
    /// Names or interfaces of the uplinks. Empty: all.
    pub uplinks: Vec<String>,
    /// Networks of the clients. Empty: any.
    pub cidrs: Vec<Cidr>,
}

impl WanAccess {
    /// Reports what is wrong. It is allowed only where sign-in and TLS protect the API.
    pub(super) fn validate(&self, signs_in: bool, has_tls: bool, uplinks: &[&str], problems: &mut Problems) {
        let path = "listen.wan_access";
        if self.enabled && !signs_in {
            let message = "Needs auth.enabled: without sign-in every client is an administrator.";
            problems.add(code::CONFLICT, format!("{path}.enabled"), message);
        }
        if self.enabled && !has_tls {
            let message = "Needs tls.enabled: passwords and keys would be sent in clear.";
            problems.add(code::CONFLICT, format!("{path}.enabled"), message);
        }
        for (index, name) in self.uplinks.iter().enumerate() {
            if !uplinks.contains(&name.as_str()) {
                let path = format!("{path}.uplinks[{index}]");
                let known = uplinks.iter().map(|name| (*name).to_owned()).collect();
                problems
                    .add(code::UNKNOWN_REFERENCE, path, format!("There is no uplink {name:?}."))
                    .allowed = Some(known);
            }
        }
        for (field, length) in [("uplinks", self.uplinks.len()), ("cidrs", self.cidrs.len())] {
            if length > MAX_ENTRIES {
                problems.add(code::RANGE, format!("{path}.{field}"), format!("At most {MAX_ENTRIES}."));
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use crate::settings::bootstrap::parse;

    #[test]
    fn access_needs_sign_in_tls_and_known_uplinks() {
        let safe = "auth: { enabled: true }\ntls: { enabled: true }\n";
        let listen = "listen: { wan_access: { enabled: true, uplinks: [eth0], cidrs: [203.0.113.0/24] } }\n";
        let config = parse(&format!("{safe}{listen}")).unwrap();
        assert!(config.listen.wan_access.enabled);
        for (file, path) in [
            (listen.to_owned(), "listen.wan_access.enabled"),
            (format!("auth: {{ enabled: true }}\n{listen}"), "listen.wan_access.enabled"),
            (format!("tls: {{ enabled: true }}\n{listen}"), "listen.wan_access.enabled"),
            (format!("{safe}{}", listen.replace("eth0", "eth7")), "listen.wan_access.uplinks[0]"),
        ] {
            let errors = parse(&file).unwrap_err();
            assert!(errors.iter().all(|error| error.path == path), "{errors:?}");
        }
        assert!(parse("listen: { wan_access: { cidrs: [203.0.113.0/24] } }").is_ok());
    }
}
