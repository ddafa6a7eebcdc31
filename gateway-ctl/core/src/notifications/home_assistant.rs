//! States of the gateway as retained MQTT messages, with those that make Home Assistant discover a sensor for each.
//!
//! All messages are a function of the states: the difference from the last ones is what is published, and a topic that is
//! gone gets an empty message, which removes its sensor.

use std::collections::BTreeMap;

use serde_json::{Value, json};

use super::AlertSnapshot;

/// Payloads of the topic of availability.
pub const ONLINE: &str = "online";
pub const OFFLINE: &str = "offline";

/// States that have a sensor.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct States {
    /// Word of the verdict; `None` before the first.
    pub verdict: Option<String>,
    pub uplinks: Vec<Link>,
    pub tunnels: Vec<Link>,
    pub alerts: Vec<AlertSnapshot>,
}

/// Uplink or tunnel.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Link {
    /// Stable name, such as an id or the name of an interface.
    pub key: String,
    pub name: String,
    pub is_up: bool,
    pub status: String,
}

/// Identity of the gateway, and the prefixes of its topics.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Identity {
    /// Id of the installation.
    pub node_id: String,
    /// Name for people.
    pub name: String,
    pub version: String,
    /// URL of the dashboard; empty if none is known.
    pub url: String,
    /// First level of the topics of states.
    pub topic_prefix: String,
    /// First level of the topics of discovery, which Home Assistant has set.
    pub discovery_prefix: String,
}

impl Identity {
    fn node(&self) -> String {
        word(&self.node_id)
    }

    /// Returns the topic that says whether the gateway is there.
    pub fn availability_topic(&self) -> String {
        format!("{}/{}/availability", self.topic_prefix, self.node())
    }

    /// Returns the topic of the message of a test.
    pub fn test_topic(&self) -> String {
        format!("{}/{}/test", self.topic_prefix, self.node())
    }

    /// Returns the filters of all topics of this gateway.
    pub fn filters(&self) -> [String; 2] {
        let node = self.node();
        [format!("{}/{node}/#", self.topic_prefix), format!("{}/+/{node}/+/config", self.discovery_prefix)]
    }

    fn state_topic(&self, object: &str) -> String {
        format!("{}/{}/{object}", self.topic_prefix, self.node())
    }

    fn device(&self) -> Value {
        let mut device = json!({"identifiers": [self.node()], "name": self.name, "model": "gatewayd",
            "sw_version": self.version});
        if !self.url.is_empty() {
            device["configuration_url"] = self.url.as_str().into();
        }
        device
    }
}

/// Sensor and its state.
struct Sensor {
    component: &'static str,
    object: String,
    name: String,
    /// Further fields of the discovery.
    more: Value,
    state: Value,
}

/// Returns all retained messages, by topic.
pub fn messages(states: &States, identity: &Identity) -> BTreeMap<String, String> {
    let mut messages = BTreeMap::from([(identity.availability_topic(), ONLINE.to_owned())]);
    for sensor in sensors(states) {
        let topic = identity.state_topic(&sensor.object);
        let mut config = json!({
            "name": sensor.name,
            "unique_id": format!("{}_{}", identity.node(), sensor.object),
            "state_topic": topic,
            "value_template": "{{ value_json.state }}",
            "json_attributes_topic": topic,
            "availability_topic": identity.availability_topic(),
            "device": identity.device(),
        });
        for (key, value) in sensor.more.as_object().into_iter().flatten() {
            config[key] = value.clone();
        }
        let (component, object) = (sensor.component, &sensor.object);
        let discovery =
            format!("{}/{component}/{}/{object}/config", identity.discovery_prefix, identity.node());
        messages.insert(discovery, config.to_string());
        messages.insert(topic, sensor.state.to_string());
    }
    messages
}

fn sensors(states: &States) -> impl Iterator<Item = Sensor> {
    let verdict = states.verdict.iter().map(|word| Sensor {
        component: "sensor",
        object: "verdict".to_owned(),
        name: "Verdict".to_owned(),
        more: json!({"device_class": "enum", "options": ["OK", "BLOCKED", "UNKNOWN", "LEAK"]}),
        state: json!({ "state": word }),
    });
    let uplinks = states.uplinks.iter().map(|link| of_link("uplink", "Uplink", link));
    let tunnels = states.tunnels.iter().map(|link| of_link("tunnel", "Tunnel", link));
    verdict.chain(uplinks).chain(tunnels).chain(states.alerts.iter().map(of_alert))
}

fn of_link(kind: &str, label: &str, link: &Link) -> Sensor {
    Sensor {
        component: "binary_sensor",
        object: format!("{kind}_{}", word(&link.key)),
        name: format!("{label} {}", link.name),
        more: json!({"device_class": "connectivity"}),
        state: json!({"state": on_off(link.is_up), "status": link.status}),
    }
}

fn of_alert(alert: &AlertSnapshot) -> Sensor {
    Sensor {
        component: "binary_sensor",
        object: format!("alert_{}", word(&alert.fingerprint)),
        name: alert.title.clone(),
        more: json!({"device_class": "problem"}),
        state: json!({"state": on_off(true), "kind": alert.kind, "severity": alert.severity, "message": alert.message,
            "since": alert.first_seen.to_string(), "count": alert.count}),
    }
}

fn on_off(is_on: bool) -> &'static str {
    if is_on { "ON" } else { "OFF" }
}

/// Returns a text in the characters that a level of a topic and an id of Home Assistant may have.
fn word(text: &str) -> String {
    text.chars().map(|c| if c.is_ascii_alphanumeric() || c == '-' { c } else { '_' }).collect()
}

#[cfg(test)]
mod tests {
    use jiff::Timestamp;

    use super::*;
    use crate::notifications::test_alert;

    fn identity() -> Identity {
        Identity {
            node_id: "0192-a".into(),
            name: "gw-1".into(),
            version: "0.1.0".into(),
            url: String::new(),
            topic_prefix: "gateway".into(),
            discovery_prefix: "homeassistant".into(),
        }
    }

    #[test]
    fn each_state_has_a_sensor_that_home_assistant_discovers() {
        let link = Link { key: "wan/0".into(), name: "Fibre".into(), is_up: true, status: "online".into() };
        let alerts = vec![test_alert(Timestamp::UNIX_EPOCH)];
        let states = States { verdict: Some("OK".into()), uplinks: vec![link], tunnels: vec![], alerts };
        let messages = messages(&states, &identity());
        let topics: Vec<&str> = messages.keys().map(String::as_str).collect();
        assert_eq!(
            topics,
            [
                "gateway/0192-a/alert_test",
                "gateway/0192-a/availability",
                "gateway/0192-a/uplink_wan_0",
                "gateway/0192-a/verdict",
                "homeassistant/binary_sensor/0192-a/alert_test/config",
                "homeassistant/binary_sensor/0192-a/uplink_wan_0/config",
                "homeassistant/sensor/0192-a/verdict/config",
            ]
        );
        let config: Value = serde_json::from_str(&messages[topics[5]]).unwrap();
        assert_eq!(
            config,
            json!({"name": "Uplink Fibre", "unique_id": "0192-a_uplink_wan_0", "state_topic": "gateway/0192-a/uplink_wan_0",
                "value_template": "{{ value_json.state }}", "json_attributes_topic": "gateway/0192-a/uplink_wan_0",
                "availability_topic": "gateway/0192-a/availability", "device_class": "connectivity",
                "device": {"identifiers": ["0192-a"], "name": "gw-1", "model": "gatewayd", "sw_version": "0.1.0"}})
        );
        assert_eq!(messages["gateway/0192-a/uplink_wan_0"], r#"{"state":"ON","status":"online"}"#);
        assert_eq!(messages["gateway/0192-a/verdict"], r#"{"state":"OK"}"#);
    }
}
