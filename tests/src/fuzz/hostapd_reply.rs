//! Target: replies of the control socket of hostapd.

use gateway_core::access_point::{parse_station, parse_status};

/// Reads the bytes as a state and as a station. Checks that both are bounded by the reply.
pub fn hostapd_reply(data: &[u8]) {
    let text = String::from_utf8_lossy(data);
    if let Some(state) = parse_status(&text) {
        assert!(state.networks.len() <= 16 && state.state.len() <= text.len(), "{state:?}");
        let names = state.networks.iter().map(|network| network.interface.len());
        assert!(names.sum::<usize>() <= text.len(), "{state:?}");
    }
    if let Some(station) = parse_station(&text) {
        assert!(station.security.is_none_or(|security| ["wpa2", "wpa3"].contains(&security)), "{station:?}");
        assert!(!station.authorized || text.contains("[AUTHORIZED]"), "{station:?}");
    }
}
