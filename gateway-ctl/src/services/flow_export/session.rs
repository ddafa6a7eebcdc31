//! Session with a collector, by its protocol.

use gateway_core::flow_log::FlowRecord;
use jiff::Timestamp;

use super::{ipfix, otlp, syslog};

pub(super) enum Session {
    Ipfix(ipfix::Session),
    Syslog(syslog::Session),
    Otlp(otlp::Client),
}

impl Session {
    /// Reports whether the collector has taken a connection, which is a sign of life before the first record.
    pub(super) fn is_connected(&self) -> bool {
        match self {
            Session::Ipfix(session) => session.is_connected(),
            Session::Syslog(_) => true,
            Session::Otlp(_) => false,
        }
    }

    /// Sends records. Returns when the collector has them, as far as its protocol can tell.
    pub(super) async fn send(&mut self, records: &[FlowRecord], now: Timestamp) -> Result<(), String> {
        match self {
            Session::Ipfix(session) => session.send(records, now).await,
            Session::Syslog(session) => session.send(records).await,
            // Nothing is open between two requests.
            Session::Otlp(_) if records.is_empty() => Ok(()),
            Session::Otlp(client) => client.send_logs(records).await,
        }
    }
}
