//! Words of the gateway itself, which say nothing about its network: fields, states, defaults.

use std::collections::HashSet;
use std::sync::LazyLock;

use regex::Regex;
use serde_json::Value;

/// Names that the kernel and udev give to interfaces, by their kind and place, and those that most people give them.
static CONVENTIONAL_INTERFACE: LazyLock<Regex> = LazyLock::new(|| {
    Regex::new(
        r"(?x)^(?:
        (?:lo|dummy|eth|wlan|wan|lan|br|br-lan|bond|veth|tun|tap|wg|ppp|usb|ifb|vlan|mgmt|dmz|guest)[0-9]{0,4}
        | (?:en|wl|ww)(?:o[0-9]+|s[0-9]+|p[0-9]+s[0-9]+)(?:f[0-9]+)?(?:d[0-9]+|np[0-9]+)?
        )(?:\.[0-9]{1,4})?$",
    )
    .expect("a test compiles it")
});

/// Words that stay as they are.
#[derive(Clone, Debug, Default)]
pub struct Vocabulary(HashSet<String>);

impl Vocabulary {
    pub fn add(&mut self, word: &str) {
        self.0.insert(word.to_owned());
    }

    /// Adds the name of an interface, unless it is no usual one.
    pub fn add_interface(&mut self, name: &str) {
        if CONVENTIONAL_INTERFACE.is_match(name) {
            self.add(name);
        }
    }

    /// Adds the names of fields and the fixed values of a JSON schema, or of a document of many.
    pub fn add_schema(&mut self, schema: &Value) {
        match schema {
            Value::Object(fields) => {
                for (field, value) in fields {
                    match (field.as_str(), value) {
                        ("properties" | "paths" | "schemas", Value::Object(named)) => {
                            named.keys().for_each(|name| self.add(name));
                        }
                        ("enum" | "const" | "default" | "operationId", value) => self.add_values(value),
                        _ => {}
                    }
                    self.add_schema(value);
                }
            }
            Value::Array(list) => list.iter().for_each(|one| self.add_schema(one)),
            _ => {}
        }
    }

    /// Adds the names of the fields and the texts of a value, such as the defaults of a configuration. Nested fields are
    /// added with their path as well: `dns.listen_port`.
    pub fn add_values(&mut self, value: &Value) {
        self.add_below("", value);
    }

    pub fn contains(&self, word: &str) -> bool {
        self.0.contains(word)
    }

    fn add_below(&mut self, path: &str, value: &Value) {
        match value {
            Value::String(text) => self.add(text),
            Value::Array(list) => list.iter().for_each(|one| self.add_below(path, one)),
            Value::Object(fields) => {
                for (field, value) in fields {
                    let path = if path.is_empty() { field.clone() } else { format!("{path}.{field}") };
                    self.add(field);
                    self.add_below(&path, value);
                    self.add(&path);
                }
            }
            _ => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn interfaces_with_the_usual_names_stay() {
        let mut vocabulary = Vocabulary::default();
        let usual = ["eth0", "enp3s0f1", "eno1", "wlp2s0", "lan0.100", "br-lan", "wg0"];
        let chosen = ["wlan-smith", "kims-eth0", "eth0-kim", "enx02abcd000001", "lan.kim"];
        usual.iter().chain(&chosen).for_each(|name| vocabulary.add_interface(name));
        assert!(usual.iter().all(|name| vocabulary.contains(name)));
        assert!(!chosen.iter().any(|name| vocabulary.contains(name)));
    }
}
