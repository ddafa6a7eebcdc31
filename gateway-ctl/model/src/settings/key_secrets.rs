//! Secrets in values of the configuration that are set at run time.
//!
//! Each secret is a setting of its own, below the key of the value: sealed in the store, exported only with secrets, and
//! never shown. The value itself has none.

use serde_json::{Map, Value};

use super::Settings;
use super::bootstrap::Bootstrap;
use super::group::{mark_of, parent_of};
use super::keys::{ACCESS_POINT, secret_keys, secrets_of};
use crate::problem::Warning;
use crate::secret::Secret;
use crate::state::State;

impl State {
    /// Sets the value of a key. Secrets that it has are stored beside it, those that it omits stay, and null removes one.
    pub fn set_key(&mut self, key: &str, mut value: Value) {
        for name in secrets_of(key) {
            let secret = take(&mut value, name);
            let has_parent = parent_of(&mut value, mark_of(name).0).is_some();
            let stored = format!("{key}.{name}");
            match secret {
                Some(Value::String(text)) => self.set_secret(&stored, Secret::new(text)),
                None if has_parent => {}
                Some(_) | None => {
                    self.unset(&stored);
                }
            }
        }
        self.set(key, value);
    }

    /// Removes the value of a key with its secrets. Returns false if there was none.
    pub fn unset_key(&mut self, key: &str) -> bool {
        for secret in secret_keys(key) {
            self.unset(&secret);
        }
        self.unset(key)
    }

    /// Returns the value of a key for an export: with its secrets, or with marks that say which are set.
    pub(crate) fn exported_key(&self, key: &str, secrets: bool) -> Option<Value> {
        let mut value = self.settings.get(key)?.clone();
        for name in secrets_of(key) {
            let secret = self.settings.secret(&format!("{key}.{name}"));
            let (parent, mark) = mark_of(name);
            let Some(map) = parent_of(&mut value, parent).filter(|_| secret.is_set()) else { continue };
            if secrets {
                map.insert(leaf(name).to_owned(), secret.expose().into());
            } else {
                map.insert(mark, true.into());
            }
        }
        Some(value)
    }

    /// Switches the access point of an imported value off if it needs a passphrase that the document does not have.
    /// Returns a warning if it does.
    pub(crate) fn switch_off_without_secrets(&mut self, key: &str) -> Option<Warning> {
        let mut value = self.settings.get(key).filter(|_| key == ACCESS_POINT)?.clone();
        let lacks = |name: &&&str| !self.settings.secret(&format!("{key}.{name}")).is_set();
        let mut is_off = false;
        for name in secrets_of(key).iter().filter(lacks) {
            let Some(map) = parent_of(&mut value, mark_of(name).0) else { continue };
            // A guest network is on unless the value says otherwise.
            let is_on = map.get("enabled").map_or(*name != "passphrase", |on| *on == Value::Bool(true));
            if is_on {
                map.insert("enabled".to_owned(), false.into());
                is_off = true;
            }
        }
        is_off.then(|| {
            self.set(key, value);
            let message = "Switched off: it needs a secret that is not in the export.";
            Warning::new(format!("settings.{key}.enabled"), message)
        })
    }
}

/// Takes a secret and its mark out of a value.
fn take(value: &mut Value, name: &str) -> Option<Value> {
    let (parent, mark) = mark_of(name);
    let map: &mut Map<String, Value> = parent_of(value, parent)?;
    map.shift_remove(&mark);
    map.shift_remove(leaf(name))
}

fn leaf(name: &str) -> &str {
    name.rsplit('.').next().unwrap_or(name)
}

impl Bootstrap {
    /// Fills in the secrets of values that were set at run time: those that were set with them, else those of the file.
    pub(super) fn take_secrets(&mut self, file: &Bootstrap, settings: &Settings) {
        if settings.get(ACCESS_POINT).is_none() {
            return;
        }
        let Some(ap) = &mut self.network.ap else { return };
        let of_file = file.network.ap.as_ref();
        let first = |stored: Secret, of_file: Option<&Secret>| match stored.is_set() {
            true => stored,
            false => of_file.cloned().unwrap_or_default(),
        };
        let of = |name: &str| settings.secret(&format!("{ACCESS_POINT}.{name}"));
        ap.passphrase = first(of("passphrase"), of_file.map(|ap| &ap.passphrase));
        if let Some(guest) = &mut ap.guest {
            let of_file = of_file.and_then(|ap| ap.guest.as_ref());
            guest.passphrase = first(of("guest.passphrase"), of_file.map(|guest| &guest.passphrase));
        }
    }

    /// Reports whether a value with secrets differs from that of another configuration.
    pub fn differs_in(&self, other: &Bootstrap, key: &str) -> bool {
        key == ACCESS_POINT && self.network.ap != other.network.ap
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::settings::bootstrap::parse;
    use crate::settings::keys;

    fn draft() -> State {
        State::default().begin("2026-11-20T12:00:00Z".parse().unwrap())
    }

    fn value() -> Value {
        json!({"interface": "eth1", "subnet": "10.9.0.0/24", "ip": "10.9.0.1", "enabled": true, "ssid": "home",
            "country": "DE", "passphrase": "correct horse",
            "guest": {"ssid": "guests", "subnet": "10.8.0.0/24", "ip": "10.8.0.1", "passphrase": "battery staple"}})
    }

    #[test]
    fn secrets_are_stored_beside_the_value_and_stay_until_null() {
        let mut state = draft();
        state.set_key(ACCESS_POINT, value());
        assert!(!state.settings.get(ACCESS_POINT).unwrap().to_string().contains("horse"));
        let file = Bootstrap::default();
        let config = file.overlaid(&state.settings).unwrap();
        let ap = config.network.ap.clone().unwrap();
        assert_eq!(ap.passphrase.expose(), "correct horse");
        assert_eq!(ap.guest.unwrap().passphrase.expose(), "battery staple");
        let shown = keys::at(&keys::shown(&config), ACCESS_POINT).unwrap().clone();
        assert_eq!(
            (&shown["has_passphrase"], &shown["guest"]["has_passphrase"]),
            (&json!(true), &json!(true))
        );
        // The shown form is an input that changes nothing.
        state.set_key(ACCESS_POINT, shown.clone());
        assert_eq!(file.overlaid(&state.settings).unwrap().network.ap, config.network.ap);
        let mut cleared = shown;
        cleared["passphrase"] = Value::Null;
        state.set_key(ACCESS_POINT, cleared);
        let problems = file.overlaid(&state.settings).unwrap_err();
        assert_eq!(problems.iter().next().unwrap().path, "network.ap.passphrase");
        state.set_key(ACCESS_POINT, Value::Null);
        assert!(secret_keys(ACCESS_POINT).all(|key| state.settings.get(&key).is_none()));
    }

    #[test]
    fn another_passphrase_is_a_difference_and_that_of_the_file_stays_in_use() {
        let text = "network: { ap: { interface: eth1, subnet: 10.9.0.0/24, ip: 10.9.0.1, passphrase: from the file } }";
        let file = parse(text).unwrap();
        let mut state = draft();
        let mut without = value();
        without.as_object_mut().unwrap().remove("passphrase");
        state.set_key(ACCESS_POINT, without);
        let before = file.overlaid(&state.settings).unwrap();
        assert_eq!(before.network.ap.as_ref().unwrap().passphrase.expose(), "from the file");
        state.set_key(ACCESS_POINT, value());
        let after = file.overlaid(&state.settings).unwrap();
        assert!(before.differs_in(&after, ACCESS_POINT) && !after.differs_in(&after, ACCESS_POINT));
        assert_eq!(keys::shown(&before), keys::shown(&after));
    }

    #[test]
    fn an_export_has_secrets_or_marks_and_without_them_it_is_switched_off() {
        let mut state = draft();
        state.set_key(ACCESS_POINT, value());
        assert_eq!(state.exported_key(ACCESS_POINT, true), Some(value()));
        let without = state.exported_key(ACCESS_POINT, false).unwrap();
        assert!(!without.to_string().contains("horse"), "{without}");
        let mut other = draft();
        other.set_key(ACCESS_POINT, without);
        assert!(other.switch_off_without_secrets(ACCESS_POINT).is_some());
        Bootstrap::default().overlaid(&other.settings).unwrap();
        assert!(state.switch_off_without_secrets(ACCESS_POINT).is_none());
    }
}
