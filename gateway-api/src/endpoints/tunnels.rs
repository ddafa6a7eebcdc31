//! Tunnels.

use gateway_ctl::os::wireguard::{generate_keypair, generate_preshared_key};
use gateway_ctl::reconcile::Reason;
use gateway_model::kinds::tunnel::{AdminState, Peer, TunnelType};
use gateway_model::ovpn;
use gateway_model::problem::code;
use gateway_model::wgconf::{self, WgConf, WgConfPeer};
use gateway_model::{Kind, Problems, Resource, State, Tunnel, Warning};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use crate::authorization::Access;
use crate::context::Cx;
use crate::error::{ApiError, Code};
use crate::gateway::Open;
use crate::query::parameters::DryRun;
use crate::reply::WithHeaders;
use crate::request::{Query, Req};
use crate::table::Method::Post;
use crate::table::collection::{Live, Object, expected, shown};
use crate::table::{Audit, Collection, Effect, Ops, Table};

mod history;

const KIND: &Kind = &Kind::of::<Tunnel>();
const LIVE: Option<Live> = Some(Live::within(observe_tunnels));

/// Query of an upload whose body is a file as text.
#[derive(Default, Deserialize, JsonSchema)]
#[serde(default)]
struct FileQuery {
    /// Name of the tunnel, for a body that is a file as text. Other fields need a form or JSON.
    name: Option<String>,
}

pub(super) fn rows(t: &mut Table) {
    t.collection::<Tunnel>(Collection {
        path: "/tunnels",
        item: "/tunnels/{id}",
        actions: ["create_tunnel", "replace_tunnel", "delete_tunnel"],
        ops: Ops::ALL,
        live: LIVE,
    });
    let stores = |action| Effect::Stores(Audit { action, resource_type: Tunnel::NOUN });
    t.command("/tunnels/{id}/up", "bring_up_tunnel", stores("bring_up_tunnel"), up)
        .summary("Bring a tunnel up")
        .doc("Responds with the tunnel; the first handshake may complete later.")
        .tagged();
    t.alias(Post, "/tunnels/{id}/connect", "/tunnels/{id}/up", "connect_tunnel");
    t.command("/tunnels/{id}/down", "bring_down_tunnel", stores("bring_down_tunnel"), down)
        .summary("Take a tunnel down")
        .doc("Policies that use it block or fall back, by their failure policy.")
        .tagged();
    t.alias(Post, "/tunnels/{id}/disconnect", "/tunnels/{id}/down", "disconnect_tunnel");
    t.view("/tunnels/{id}/config", "get_tunnel_config", config)
        .summary("The tunnel as a file: .conf, or .ovpn with the directives in use")
        .query::<ConfigQuery>()
        .answers(&[Code::InvalidState]);
    t.command("/tunnels/generate-keys", "generate_tunnel_keys", Effect::Reads, generate_keys)
        .summary("Generate a WireGuard key pair and a preshared key")
        .doc("The keys are not stored.")
        .access(Access::Operate);
    t.action(
        "/tunnels/import-wireguard",
        "import_wireguard_tunnel",
        stores("import_wireguard_tunnel"),
        import,
    )
    .summary("Create a tunnel from a .conf file")
    .doc("Hooks and routing keys of the file are ignored; the warnings name them.")
    .accepts_text("config")
    .query::<FileQuery>()
    .with_dry_run()
    .status(201)
    .tagged();
    t.view("/tunnels/egress", "list_tunnel_egress", egress).summary("Tunnel of each applied policy");
    history::rows(t);
    t.action("/tunnels/upload-ovpn", "upload_ovpn_tunnel", stores("upload_ovpn_tunnel"), upload)
        .summary("Create a tunnel from an .ovpn file")
        .doc(
            "Keys and certificates must be inline. Commands, plugins, routes and name servers of the file are ignored; the warnings name them.",
        )
        .accepts_text("config")
        .query::<FileQuery>()
        .with_dry_run()
        .status(201)
        .tagged();
    super::bridges::rows(t);
}

/// Adds the observed state of tunnels and their peers.
fn observe_tunnels(open: &Open, state: &State, shown: &mut [Value]) {
    let observed = open.live();
    super::observed::add_observed(shown, &state.tunnels, |tunnel| observed.tunnel(tunnel));
    for value in shown {
        let id = value["id"].as_str().and_then(|id| id.parse().ok());
        let Some(tunnel) = id.and_then(|id| state.tunnels.get(id)) else { continue };
        let peers = value.get_mut("peers").and_then(Value::as_array_mut);
        for (peer, shown) in tunnel.peers.iter().zip(peers.into_iter().flatten()) {
            super::observed::merge(shown, json!(observed.peer(tunnel, &peer.public_key)));
        }
    }
}

async fn up(cx: Cx, request: Req<()>) -> Result<Object<Tunnel>, ApiError> {
    set_admin_state(cx, request, AdminState::Up).await
}

async fn down(cx: Cx, request: Req<()>) -> Result<Object<Tunnel>, ApiError> {
    set_admin_state(cx, request, AdminState::Down).await
}

async fn set_admin_state(cx: Cx, request: Req<()>, want: AdminState) -> Result<Object<Tunnel>, ApiError> {
    let id = super::by_id::id_of(KIND, &cx, request.params.get("id"))?;
    let tunnel = id.parse().ok().and_then(|id| cx.open().ok()?.store.current().tunnels.get(id).cloned());
    if want == AdminState::Up && tunnel.is_some_and(|tunnel| !tunnel.enabled) {
        return Err(ApiError::new(Code::InvalidState, "The tunnel is disabled; enable it first.")
            .detail("state", "disabled")
            .detail("allowed", vec!["enabled"]));
    }
    let changed = {
        let id = id.clone();
        cx.commit(move |draft| {
            let expected = expected(KIND, draft, &id, request.if_match.as_deref())?;
            let parsed = id.parse().map_err(|_| super::by_id::not_found::<Tunnel>(&id))?;
            let now = draft.now();
            let (_, warnings) =
                draft.update::<Tunnel>(parsed, expected, |tunnel| tunnel.set_admin_state(want, now))?;
            Ok(warnings)
        })
        .await?
    };
    let open = cx.open()?;
    open.reconcile(Reason::Revision).await?;
    if let (AdminState::Up, Some(engines)) = (want, open.enforcement.engines()) {
        engines.openvpn.retry_now(&id);
    }
    object(open, &id, changed)
}

/// Returns the reply with the stored and observed state of the tunnel.
fn object(open: &Open, id: &str, warnings: Vec<Warning>) -> Result<Object<Tunnel>, ApiError> {
    let state = open.store.current();
    let (value, revision) = KIND.get(&state, id)?;
    let mut reply = shown(open, &state, LIVE, value, revision);
    reply.warnings = warnings;
    Ok(Object::new(reply))
}

#[derive(Debug, Serialize, JsonSchema)]
pub(super) struct RenderedConfig {
    pub id: String,
    pub name: String,
    pub r#type: String,
    /// Content of the configuration file.
    pub config: String,
    /// The file contains the private keys.
    pub revealed: bool,
}

/// Query of the file of a tunnel.
#[derive(Default, Deserialize, JsonSchema)]
#[serde(default)]
struct ConfigQuery {
    /// Include the keys, which are *** otherwise. Requires an administrator with a credential; audited.
    reveal: bool,
}

async fn config(cx: Cx, request: Req<()>) -> Result<RenderedConfig, ApiError> {
    let id = &super::by_id::id_of(KIND, &cx, request.params.get("id"))?;
    let ConfigQuery { reveal } = request.query.read()?;
    let state = cx.open()?.store.current();
    let tunnel = id
        .parse()
        .ok()
        .and_then(|id| state.tunnels.get(id))
        .ok_or_else(|| super::by_id::not_found::<Tunnel>(id))?;
    if reveal {
        cx.require(Access::Reveal)?;
    }
    let unusable =
        |message: &str, state: &str| ApiError::new(Code::InvalidState, message).detail("state", state);
    let text = match tunnel.r#type {
        TunnelType::Wireguard => {
            let file = conf_file(tunnel);
            let file = file.ok_or_else(|| unusable("The tunnel has no usable private key.", "no_key"))?;
            wgconf::render(&file, reveal)
        }
        TunnelType::Openvpn => {
            let file = tunnel.openvpn_file();
            let file = file.ok_or_else(|| unusable("The tunnel has no readable file.", "no_config"))?;
            ovpn::render(&file, reveal).to_string()
        }
    };
    if reveal {
        cx.record_reading(Audit { action: "reveal_tunnel_config", resource_type: Tunnel::NOUN }).await?;
    }
    Ok(RenderedConfig {
        id: tunnel.meta.id.to_string(),
        name: tunnel.name.clone(),
        r#type: tunnel.r#type.to_string(),
        config: text,
        revealed: reveal,
    })
}

fn conf_file(tunnel: &Tunnel) -> Option<WgConf> {
    let peer = |peer: &Peer| WgConfPeer {
        public_key: *peer.public_key.bytes(),
        preshared_key: peer.preshared_key.key().map(|key| wgconf::Key::new(*key)),
        endpoint: peer.endpoint.as_ref().map(ToString::to_string),
        allowed_ips: peer.allowed_ips.iter().map(|net| net.net()).collect(),
        persistent_keepalive: peer
            .persistent_keepalive
            .or(Some(tunnel.keepalive))
            .filter(|seconds| *seconds > 0),
    };
    Some(WgConf {
        private_key: wgconf::Key::new(*tunnel.private_key.key()?),
        addresses: tunnel.addresses.iter().map(|address| address.net()).collect(),
        dns: tunnel.dns.clone(),
        mtu: tunnel.mtu,
        listen_port: tunnel.listen_port,
        peers: tunnel.peers.iter().map(peer).collect(),
        ignored: Vec::new(),
    })
}

#[derive(Serialize, JsonSchema)]
pub(super) struct GeneratedKeys {
    pub private_key: String,
    pub public_key: String,
    pub preshared_key: String,
}

async fn generate_keys(_: Cx, _: Req<()>) -> Result<GeneratedKeys, ApiError> {
    let pair = generate_keypair().map_err(|error| ApiError::internal(&error))?;
    let preshared = generate_preshared_key().map_err(|error| ApiError::internal(&error))?;
    Ok(GeneratedKeys {
        private_key: pair.private.to_base64().to_string(),
        public_key: wgconf::encode_key(&pair.public),
        preshared_key: preshared.to_base64().to_string(),
    })
}

#[derive(Default, Deserialize, JsonSchema)]
#[serde(default)]
pub(super) struct Import {
    /// Name of the new tunnel: a-z, 0-9, _ and -.
    pub name: String,
    /// Content of the .conf file.
    pub config: String,
}

async fn import(cx: Cx, request: Req<Import>) -> Result<Object<Tunnel>, ApiError> {
    let Import { name, config } = request.input;
    let mut problems = Problems::new();
    if name.is_empty() {
        problems.required("name");
    }
    let file = match wgconf::parse(&config) {
        Ok(file) => Some(file),
        Err(_) if config.is_empty() => {
            problems.required("config");
            None
        }
        Err(error) => {
            problems.add(code::FORMAT, "config", format!("{error}."));
            None
        }
    };
    let Some(file) = file.filter(|_| problems.is_empty()) else {
        return Err(ApiError::validation(&problems));
    };
    let ignored = file.ignored.iter().map(|key| Warning::new("config", format!("{key} was ignored.")));
    let mut object = create(&cx, &request.query, input_of(&name, &file)).await?;
    object.reply.warnings.extend(ignored);
    Ok(object)
}

/// Creates a tunnel, or shows in a dry run how it would be.
async fn create(cx: &Cx, query: &Query, input: Value) -> Result<Object<Tunnel>, ApiError> {
    let open = cx.open()?;
    if query.read::<DryRun>()?.dry_run {
        let mut draft = open.store.current().begin(open.now());
        let written = KIND.create(&mut draft, input)?;
        let (value, revision) = KIND.get(&draft, &written.id.to_string())?;
        let mut reply = shown(open, &draft, LIVE, value, revision);
        (reply.etag, reply.warnings) = (None, written.warnings);
        return Ok(Object::new(reply));
    }
    let written = cx.commit(move |draft| KIND.create(draft, input)).await?;
    let mut object = object(open, &written.id.to_string(), written.warnings)?;
    object.reply.status = http::StatusCode::CREATED;
    object.reply.location = Some(format!("/tunnels/{}", written.id));
    Ok(object)
}

#[derive(Default, Deserialize, JsonSchema)]
#[serde(default)]
pub(super) struct Upload {
    /// Name of the new tunnel: a-z, 0-9, _ and -.
    pub name: String,
    /// Content of the .ovpn file.
    pub config: String,
    /// User name, if the server requires one and the file has none.
    pub username: Option<String>,
    /// Password, if the server requires one and the file has none.
    pub password: Option<String>,
    /// Passphrase of the private key in the file.
    pub key_passphrase: Option<String>,
}

async fn upload(cx: Cx, request: Req<Upload>) -> Result<Object<Tunnel>, ApiError> {
    let Upload { name, config, username, password, key_passphrase } = request.input;
    let input = json!({
        "name": name, "type": "openvpn", "config": config,
        "username": username, "password": password, "key_passphrase": key_passphrase,
    });
    create(&cx, &request.query, input).await
}

/// Returns the request body that creates the same tunnel.
fn input_of(name: &str, file: &WgConf) -> Value {
    let peer = |peer: &WgConfPeer| {
        let mut value = json!({
            "public_key": wgconf::encode_key(&peer.public_key),
            "endpoint": peer.endpoint,
            "allowed_ips": peer.allowed_ips,
            "persistent_keepalive": peer.persistent_keepalive,
        });
        if let Some(key) = &peer.preshared_key {
            value["preshared_key"] = json!(key.to_base64().as_str());
        }
        value
    };
    json!({
        "name": name,
        "type": "wireguard",
        "private_key": file.private_key.to_base64().as_str(),
        "addresses": file.addresses,
        "dns": file.dns,
        "mtu": file.mtu,
        "listen_port": file.listen_port,
        "peers": file.peers.iter().map(peer).collect::<Vec<_>>(),
    })
}

/// A tunnel that a policy in force uses.
#[derive(Debug, Serialize, JsonSchema)]
pub(super) struct Egress {
    pub policy_id: String,
    pub policy: String,
    /// Id of the tunnel; null if no tunnel has this name.
    pub tunnel_id: Option<String>,
    pub tunnel: String,
    /// Status of the tunnel, or `missing`.
    pub state: String,
    /// New flows of this policy use the tunnel.
    pub active: bool,
    /// Always null: this version does not count flows per tunnel.
    pub flows: Option<u64>,
}

async fn egress(cx: Cx, _: Req<()>) -> Result<WithHeaders<Vec<Egress>>, ApiError> {
    let open = cx.open()?;
    let state = open.store.current();
    let observed = open.live();
    let now = open.now();
    let mut list = Vec::new();
    for policy in state.applied.policies.iter().filter(|policy| policy.in_force(now)) {
        for hop in policy.vpn_hops() {
            let tunnel = state.tunnel_by_name(&hop.target);
            let status = tunnel.map(|tunnel| observed.tunnel(tunnel).status.to_string());
            list.push(Egress {
                policy_id: policy.meta.id.to_string(),
                policy: policy.name.clone(),
                tunnel_id: tunnel.map(|tunnel| tunnel.meta.id.to_string()),
                tunnel: hop.target.clone(),
                active: observed.is_active(policy, hop),
                state: status.unwrap_or_else(|| "missing".to_owned()),
                flows: None,
            });
        }
    }
    Ok(WithHeaders::counted(list))
}
