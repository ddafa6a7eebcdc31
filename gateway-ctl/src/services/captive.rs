//! Check for captive portals by each uplink, on request. Requests leave by the uplink, whatever uplink is active.

use std::net::SocketAddr;
use std::time::Duration;

use futures_util::future::join_all;
use gateway_core::captive::{CaptiveState, evaluate, overall, parse_head};
use gateway_core::indexes::LegId;
use gateway_core::network::UplinkSettings;
use gateway_model::settings::groups::{CaptiveCheck, CaptiveTarget};
use gateway_outbound::SocketBinding;
use schemars::JsonSchema;
use serde::Serialize;
use tokio::time::{Instant, timeout};

use crate::services::probe;
use crate::world::World;

const LIMIT: Duration = Duration::from_secs(5);

/// Result for an uplink.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct UplinkCheck {
    /// Name of the uplink, else of its interface.
    pub uplink: String,
    pub interface: String,
    pub state: CaptiveState,
    /// Address of the portal's page; null if the portal does not redirect to one.
    pub portal_url: Option<String>,
    pub targets: Vec<TargetCheck>,
}

/// Answer of a target.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct TargetCheck {
    pub url: String,
    pub address: String,
    pub state: CaptiveState,
    /// Status code of the answer.
    pub status: Option<u16>,
    /// Target of the answer's redirection.
    pub location: Option<String>,
    /// The server proved that it got this very request. Null if it is not one that does.
    pub challenge_met: Option<bool>,
    pub latency_ms: Option<f64>,
    /// Reason for which there is no answer.
    pub error: Option<String>,
}

/// Checks all uplinks at once.
pub async fn check(world: &World) -> Vec<UplinkCheck> {
    let CaptiveCheck { targets } = world.state.group();
    join_all(world.network.uplinks.iter().map(|uplink| check_uplink(world, uplink, &targets))).await
}

async fn check_uplink(world: &World, uplink: &UplinkSettings, targets: &[CaptiveTarget]) -> UplinkCheck {
    let interface = uplink.interface.clone();
    let mark = LegId::host_mark(Some(uplink.number));
    let binding = SocketBinding { interface: interface.clone(), source: None, mark };
    // Without a kernel, no rule keeps the requests on the uplink.
    let binding = world.attached.is_some().then_some(binding);
    let targets = join_all(targets.iter().map(|target| ask(target, binding.as_ref()))).await;
    let wans = world.config.all_uplinks();
    let wan = wans.iter().find(|wan| wan.interface.as_str() == interface);
    let state = overall(targets.iter().map(|target| target.state));
    let portal = || targets.iter().find_map(|target| target.location.clone());
    UplinkCheck {
        uplink: wan.map_or(&*interface, |wan| wan.display_name()).to_owned(),
        interface,
        state,
        portal_url: if state == CaptiveState::Captive { portal() } else { None },
        targets,
    }
}

async fn ask(target: &CaptiveTarget, binding: Option<&SocketBinding>) -> TargetCheck {
    let mut check = TargetCheck {
        url: target.url.clone(),
        address: target.address.to_string(),
        state: CaptiveState::Offline,
        status: None,
        location: None,
        challenge_met: None,
        latency_ms: None,
        error: None,
    };
    let Some(binding) = binding else {
        let error = "this gateway is not attached to a kernel".to_owned();
        return TargetCheck { error: Some(error), ..check };
    };
    let begun = Instant::now();
    let (head, challenge) = match timeout(LIMIT, request(target, binding)).await {
        Ok(Ok(answered)) => answered,
        Ok(Err(error)) => return TargetCheck { error: Some(error.to_string()), ..check },
        Err(_) => return TargetCheck { error: Some("no answer in time".to_owned()), ..check },
    };
    check.latency_ms = Some((begun.elapsed().as_secs_f64() * 1e6).round() / 1e3);
    let Some(answer) = parse_head(&head) else {
        // No server of the web answers so.
        return TargetCheck {
            state: CaptiveState::Captive,
            error: Some("the answer is not HTTP".to_owned()),
            ..check
        };
    };
    let asked = target.challenge.then_some(challenge.as_str());
    check.state = evaluate(&answer, asked);
    check.challenge_met = asked.map(|_| check.state == CaptiveState::Online);
    check.status = Some(answer.status);
    check.location = answer.location.and_then(|location| target.portal(&location));
    check
}

/// Sends the request. Returns the beginning of the answer, and the challenge.
async fn request(target: &CaptiveTarget, binding: &SocketBinding) -> std::io::Result<(Vec<u8>, String)> {
    let url = target.parsed().ok_or_else(|| std::io::Error::other("the URL of the target is not valid"))?;
    let server = SocketAddr::new(target.address, url.port_or_known_default().unwrap_or(80));
    let challenge = format!("{:016x}", getrandom::u64().map_err(std::io::Error::other)?);
    let host = &url[url::Position::BeforeHost..url::Position::AfterPort];
    let path = &url[url::Position::BeforePath..url::Position::AfterQuery];
    let request = format!(
        "GET {path} HTTP/1.1\r\nHost: {host}\r\nAccept: */*\r\nCache-Control: no-cache\r\nX-Challenge: {challenge}\r\n\
         Connection: close\r\n\r\n"
    );
    Ok((probe::http_head(server, &request, binding).await?, challenge))
}
