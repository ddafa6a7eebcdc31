//! Access point: runs hostapd as the setting `network.ap` says, and reports what it answers.
//!
//! The setting waits for a restart, so a run of the daemon has one configuration. A hostapd that ends is started again after
//! a pause that grows.
//!
//! Decision 0219 says why.

mod handle;
mod metrics;
mod status;

use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use gateway_core::access_point::{ApState, Station, config_file, parse_station, parse_status};
use gateway_core::facts::Facts;
use gateway_model::settings::Bootstrap;
use gateway_model::settings::bootstrap::AccessPoint;
use gateway_outbound::causes::with_causes;

use crate::os::hostapd::{self, Hostapd, HostapdControl, SOCKETS};
use crate::os::{driver_state, required_programs};
use crate::service::{Context, Service};
use crate::supervise::blocking;

pub use handle::AccessPointHandle;
pub use status::{AccessPointStatus, Missing};

/// Pause before hostapd is started again, and the longest one.
const RETRY: Duration = Duration::from_secs(5);
const MAX_RETRY: Duration = Duration::from_secs(60);
/// Time between two looks at what is missing, or at the state of hostapd.
const POLL_INTERVAL: Duration = Duration::from_secs(2);
/// Time between two looks before the first facts.
const FACTS_INTERVAL: Duration = Duration::from_millis(100);
/// Time for hostapd to dismiss its stations at the end.
const END_TIMEOUT: Duration = Duration::from_secs(3);
/// Lines that hostapd writes at each end, whatever its reason.
const AT_EACH_END: [&str; 4] =
    ["interface state", "AP-DISABLED", "CTRL-EVENT-TERMINATING", "hostapd_free_hapd_data"];
/// Most stations of one network that are read: hostapd takes 2007.
const MAX_STATIONS: usize = 2048;

/// Returns the service that runs the access point.
pub fn service(context: &Context) -> Service {
    let handle = context.handles.get::<AccessPointHandle>();
    let measured = handle.clone();
    let folder = folder(context.worlds.configuration().file());
    Service::new("access_point", context, run)
        .reports(move || {
            let health = handle.health();
            async move { health }
        })
        .measures(move |registry| metrics::register(registry, &measured.status()))
        .releases(move || blocking(move || hostapd::wait_for_end(&folder, END_TIMEOUT)))
}

fn folder(config: &Bootstrap) -> PathBuf {
    config.runtime_dir.join("access-point")
}

/// Runs until it is aborted. hostapd ends with it.
async fn run(context: Context) {
    let handle = context.handles.get::<AccessPointHandle>();
    let config = context.worlds.in_force().config;
    let folder = folder(&config);
    let orphaned = folder.clone();
    blocking(move || hostapd::end_orphans(&orphaned)).await;
    let Some(ap) = config.network.ap.as_ref().filter(|ap| ap.enabled) else {
        handle.set_off();
        return std::future::pending().await;
    };
    let bridge = ap.bridge(&config.network.bridges);
    let written = match config_file(ap, bridge, SOCKETS) {
        Ok(written) => written,
        Err(error) => {
            handle.set_ended(error.to_string());
            return std::future::pending().await;
        }
    };
    let mut pause = RETRY;
    loop {
        let facts = context.wake.facts().borrow().clone();
        if facts.links.is_empty() {
            // Before the first run, nothing is known of interfaces.
            tokio::time::sleep(FACTS_INTERVAL).await;
            continue;
        }
        let (of, bridged) = (ap.interface.to_string(), bridge.map(ToString::to_string));
        let missing = blocking(move || missing(&of, bridged.as_deref(), &facts)).await;
        if let Some(missing) = missing {
            handle.set_missing(missing);
            tokio::time::sleep(POLL_INTERVAL).await;
            continue;
        }
        let begun = Instant::now();
        let reason = match Hostapd::start(&written, &folder).await {
            Ok(process) => follow(process, ap, &folder, &handle).await,
            Err(error) => with_causes(&error),
        };
        tracing::warn!(reason, "hostapd has ended");
        handle.set_ended(reason);
        let orphaned = folder.clone();
        blocking(move || hostapd::wait_for_end(&orphaned, END_TIMEOUT)).await;
        pause = if begun.elapsed() > MAX_RETRY { RETRY } else { (pause * 2).min(MAX_RETRY) };
        tokio::time::sleep(pause).await;
    }
}

/// Returns the part of the host that is missing.
fn missing(interface: &str, bridge: Option<&str>, facts: &Facts) -> Option<Missing> {
    if required_programs::find(hostapd::PROGRAM).is_none() {
        return Some(Missing::Program);
    }
    let Some(link) = facts.links.get(interface) else {
        return Some(Missing::Interface(interface.to_owned()));
    };
    // If the kernel does not tell, hostapd does.
    if driver_state::wireless_interfaces().is_ok_and(|radios| !radios.contains(&link.index)) {
        return Some(Missing::Radio(interface.to_owned()));
    }
    let bridge = bridge.filter(|bridge| !facts.links.contains_key(*bridge))?;
    Some(Missing::Interface(bridge.to_owned()))
}

/// Follows hostapd to its end. Returns the reason.
async fn follow(mut process: Hostapd, ap: &AccessPoint, folder: &Path, handle: &AccessPointHandle) -> String {
    handle.set_running();
    let mut ticks = tokio::time::interval(POLL_INTERVAL);
    let mut last = String::new();
    loop {
        tokio::select! {
            line = process.next_line() => match line {
                Ok(line) => {
                    tracing::debug!(target: "hostapd", "{line}");
                    if !AT_EACH_END.iter().any(|text| line.contains(text)) {
                        last = line;
                    }
                }
                Err(status) if last.is_empty() => return status,
                Err(status) => return format!("{last} ({status})"),
            },
            _ = ticks.tick() => handle.set_report(ask(ap, folder).await),
        }
    }
}

/// Asks hostapd for its state and its stations. `None`: it does not answer.
async fn ask(ap: &AccessPoint, folder: &Path) -> Option<(ApState, Vec<Station>)> {
    let control = HostapdControl::connect(folder, ap.interface.as_str()).ok()?;
    let state = parse_status(&control.request("STATUS").await.ok()?)?;
    let mut stations = list_stations(&control).await?;
    if let Some(guest) = ap.guest_network() {
        // It has its socket once the first network is on.
        if let Ok(control) = HostapdControl::connect(folder, guest.interface.as_str()) {
            stations.extend(list_stations(&control).await?);
        }
    }
    Some((state, stations))
}

async fn list_stations(control: &HostapdControl) -> Option<Vec<Station>> {
    let mut stations: Vec<Station> = Vec::new();
    let mut reply = control.request("STA-FIRST").await.ok()?;
    while let Some(station) = parse_station(&reply) {
        let command = format!("STA-NEXT {}", station.mac);
        stations.push(station);
        if stations.len() == MAX_STATIONS {
            break;
        }
        reply = control.request(&command).await.ok()?;
    }
    Some(stations)
}
