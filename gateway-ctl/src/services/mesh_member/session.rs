//! Session with the coordinator: the stream of maps, and what this gateway says about itself.

use std::collections::BTreeSet;

use gateway_mesh::client::{ClientError, ControlSession, VERSION};
use gateway_mesh::network_map::{NetworkMap, key_end};
use gateway_mesh::wire::{HostInfo, MapRequest, NetInfo, RegisterRequest};
use gateway_mesh::{DiscoKey, NodeKey};
use gateway_outbound::causes::with_causes;
use ipnet::IpNet;

use super::dial::{Connector, Target};
use super::engine::{Announcement, Engine, EngineParts};
use super::membership::Membership;

const SYSTEM: &str = "linux";

/// Reason why a session ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum End {
    /// The coordinator has no such node, or its key has ended.
    NoMember(String),
    /// The connection is lost, or was not made.
    Lost {
        reason: String,
        /// True if the map was followed before.
        followed: bool,
    },
}

/// Follows the map of the coordinator until the session ends. The engine starts with the first map.
pub(super) async fn follow(parts: &EngineParts, membership: &Membership, engine: &mut Option<Engine>) -> End {
    let mut followed = false;
    let lost = |reason, followed| End::Lost { reason, followed };
    let session = match open(&parts.connector, membership).await {
        Ok(session) => session,
        Err(reason) => return lost(reason, followed),
    };
    let engine = match engine {
        Some(engine) => engine,
        None => match Engine::start(membership.clone(), parts.clone()) {
            Some(started) => engine.insert(started),
            None => return lost("the system has no random numbers".to_owned(), followed),
        },
    };
    let ended = run(parts, membership, engine, &session, &mut followed).await;
    match ended {
        Ok(end) => end,
        Err(error) if error.is_no_member() => End::NoMember(with_causes(&error)),
        Err(error) => lost(with_causes(&error), followed),
    }
}

/// Opens a session with the coordinator whose key is pinned.
async fn open(connector: &Connector, membership: &Membership) -> Result<ControlSession, String> {
    let record = &membership.record;
    let target = Target::of_url(&record.coordinator_url).ok_or("the URL of the coordinator is not valid")?;
    let socket = connector.connect(&target, &record.ca_certificate).await?;
    let (host, machine) = (target.authority(), &membership.machine);
    let session = ControlSession::open(socket, &host, machine, record.coordinator_key).await;
    session.map_err(|error| with_causes(&error))
}

async fn run(
    parts: &EngineParts,
    membership: &Membership,
    engine: &Engine,
    session: &ControlSession,
    followed: &mut bool,
) -> Result<End, ClientError> {
    let mut announcements = engine.announcements();
    let routes = announcements.borrow().routes.clone();
    if let Some(end) = finish_login(membership, session, &routes).await? {
        return Ok(end);
    }
    let request = |announcement: &Announcement, is_stream| {
        map_request(membership, engine.disco_key(), announcement, is_stream)
    };
    let first = request(&announcements.borrow_and_update(), true);
    let mut stream = session.follow(&first).await?;
    let mut map = NetworkMap::default();
    loop {
        let message = tokio::select! {
            message = stream.next() => message?,
            changed = announcements.changed() => {
                if changed.is_err() {
                    return Ok(End::Lost { reason: "the engine has ended".to_owned(), followed: *followed });
                }
                let update = request(&announcements.borrow_and_update(), false);
                session.update(&update).await?;
                continue;
            }
        };
        let now = parts.clock.now();
        let Some(message) = message else {
            let reason = "the coordinator ended the stream of maps".to_owned();
            return Ok(End::Lost { reason, followed: *followed });
        };
        let is_news = map.apply(message);
        let end = map.node.as_ref().and_then(key_end);
        if map.node.as_ref().is_some_and(|node| node.expired) || end.is_some_and(|end| end <= now) {
            return Ok(End::NoMember("the key of this node has ended".to_owned()));
        }
        *followed = true;
        parts.observed.update(|seen| {
            (seen.is_connected, seen.is_refused) = (true, false);
            (seen.last_seen, seen.failure) = (Some(now), None);
            if is_news {
                seen.map.clone_from(&map);
            }
        });
        if is_news {
            parts.keep_domain(&map.domain).await;
            engine.apply(map.clone());
        }
    }
}

/// Waits for the login of a person, if the coordinator wants one.
async fn finish_login(
    membership: &Membership,
    session: &ControlSession,
    routes: &BTreeSet<IpNet>,
) -> Result<Option<End>, ClientError> {
    if membership.record.login_url.is_empty() {
        return Ok(None);
    }
    let request = RegisterRequest {
        followup: membership.record.login_url.clone(),
        ..register_request(membership, routes)
    };
    let answer = session.register(&request).await?;
    if !answer.error.is_empty() {
        return Ok(Some(End::NoMember(answer.error)));
    }
    let is_open = !answer.auth_url.is_empty();
    Ok(is_open.then(|| End::NoMember("a person has to log in".to_owned())))
}

/// Returns a registration without a proof.
pub(super) fn register_request(membership: &Membership, routes: &BTreeSet<IpNet>) -> RegisterRequest {
    RegisterRequest {
        version: VERSION.into(),
        node_key: NodeKey(membership.node.public()),
        hostinfo: host_info(membership, None, routes),
        ..RegisterRequest::default()
    }
}

fn host_info(membership: &Membership, home: Option<u32>, routes: &BTreeSet<IpNet>) -> HostInfo {
    HostInfo {
        os: SYSTEM.to_owned(),
        hostname: membership.record.hostname.clone(),
        routable_ips: routes.iter().copied().collect(),
        net_info: home.map(|preferred_derp| NetInfo { preferred_derp }),
    }
}

fn map_request(
    membership: &Membership,
    disco_key: DiscoKey,
    announcement: &Announcement,
    is_stream: bool,
) -> MapRequest {
    MapRequest {
        version: VERSION.into(),
        node_key: NodeKey(membership.node.public()),
        disco_key,
        keep_alive: is_stream,
        stream: is_stream,
        hostinfo: host_info(membership, announcement.home, &announcement.routes),
        endpoints: announcement.endpoints.clone(),
        omit_peers: !is_stream,
        ..MapRequest::default()
    }
}
