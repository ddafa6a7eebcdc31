//! Alerts and flow records to real receivers on loopback: an Alertmanager, its relay to IRC, a mail server, a broker for MQTT, ClickHouse, and a server that answers as it is set to.

mod alertmanager;
mod clickhouse;
mod email;
mod irc_relay;
mod mqtt;
mod mute;
mod outbox;
mod signature;
mod source;
mod test_message;
mod testbed;

use std::time::Duration;

/// Timeout for immediate results on a slow machine.
pub(crate) const SOON: Duration = Duration::from_secs(20);
