//! State of the access point, as the API shows it.

use gateway_core::access_point::{ApState, Station};
use schemars::JsonSchema;
use serde::Serialize;

/// Part of the host that is missing.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Missing {
    #[error("an engine that drives the radio")]
    Engine,
    #[error("the program hostapd (Debian package hostapd)")]
    Program,
    #[error("the interface {0}, which does not exist")]
    Interface(String),
    #[error("a radio: {0} is no wireless interface")]
    Radio(String),
}

/// State of the access point.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub struct AccessPointStatus {
    /// The setting network.ap says that the gateway runs the access point.
    pub enabled: bool,
    /// Missing part of the host; null if nothing is missing, or if the access point is off.
    pub needs: Option<String>,
    /// hostapd runs.
    pub running: bool,
    /// Human-readable reason why hostapd ended last; null while it runs.
    pub error: Option<String>,
    /// State as hostapd reports it; null if it does not answer or does not run.
    pub radio: Option<ApState>,
    /// Stations of all networks; null if hostapd does not answer or does not run.
    pub stations: Option<Vec<Station>>,
}

impl AccessPointStatus {
    /// Reports whether stations can join.
    pub fn is_on(&self) -> bool {
        self.radio.as_ref().is_some_and(|radio| radio.state == "ENABLED")
    }
}
