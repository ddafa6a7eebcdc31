//! Hosts that were observed on the LAN, devices or not.

mod dns_names;

use std::collections::BTreeMap;
use std::net::IpAddr;

use gateway_core::evaluate::{Decision, PolicyRef};
use gateway_core::gateway_verdict::{PresentHost, Treatment, internet};
use gateway_core::indexes::LegId;
use gateway_core::paths::{host_path, uplinks};
use gateway_core::state_machines::hosts::{Host, HostName, NameSource};
use gateway_ctl::services::hosts::{HostInventory, HostList, HostRate, HostRates, vendor};
use gateway_ctl::world::World;
use gateway_model::filter::Filter;
use gateway_model::kinds::device::DeviceStatus;
use gateway_model::registry;
use gateway_model::validated::is_host_name;
use gateway_model::{Deleted, Device, Id, Kind, MacAddr, Written};
use http::StatusCode;
use jiff::Timestamp;
use schemars::{JsonSchema, Schema, SchemaGenerator};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};

use self::dns_names::DnsNames;
use super::devices::LIVE;
use crate::blocking::blocking;
use crate::context::Cx;
use crate::error::ApiError;
use crate::gateway::Open;
use crate::query::parameters::ListQuery;
use crate::reply::WithHeaders;
use crate::request::Req;
use crate::table::collection::{Object, shown};
use crate::table::{Audit, Effect, Output, SchemaSource, Table};

const NOUN: &str = "host";
const ADOPT: Audit = Audit { action: "adopt_host", resource_type: "device" };
const FORGET: Audit = Audit { action: "forget_host", resource_type: NOUN };

pub(super) fn rows(t: &mut Table) {
    let endpoint = t.view("/hosts", "list_hosts", list);
    endpoint
        .summary("List the hosts that were observed on the LAN, whether they are devices or not")
        .doc("A host is a MAC address at a LAN interface: from the neighbour table, DHCP leases, announcements and sampled flows. Hosts that are online come first, then the one that was seen last. A host that never answered the gateway is kept for an hour, others for 30 days; of devices for ever.")
        .query::<ListQuery>();
    endpoint.output = Output::FilteredList(SchemaSource::new(schema));
    t.view("/hosts/{id}", "get_host", one).summary("One host");
    let endpoint = t.action("/hosts/{id}/adopt", ADOPT.action, Effect::Stores(ADOPT), adopt);
    endpoint
        .summary("Make a device of a host")
        .doc("The body is that of POST /devices. Fields that it does not have are those of the host: its MAC address, its host name, and a name.");
    endpoint.input.describe(SchemaSource::new(adoption_schema));
    endpoint.status = 201;
    t.erase("/hosts/{id}", FORGET.action, Effect::Acts(FORGET), forget)
        .summary("Forget a host")
        .doc("A host that is still there is observed again, as new. Its device stays.");
}

/// Host that was observed on the LAN.
#[derive(Debug, Serialize, JsonSchema)]
pub(super) struct ObservedHost {
    id: Id,
    mac: MacAddr,
    /// Observed addresses, the newest last.
    ips: Vec<IpAddr>,
    /// Names that own zones and reservations give to its addresses, then those that the host has given itself.
    names: Vec<HostName>,
    /// Vendor by the prefix of the MAC address; null for a random or an unassigned one.
    vendor: Option<String>,
    /// Vendor class that it sent to the DHCP server.
    vendor_class: Option<String>,
    /// The address was made up by software and may change.
    randomized_mac: bool,
    interface: String,
    vlan: Option<u16>,
    /// Time of the first observation.
    first_seen: Timestamp,
    last_seen: Timestamp,
    /// It was observed in the last four minutes. Quiet hosts are asked in between.
    online: bool,
    /// It has answered the gateway. A host that has not may be forged, and is in no number of the verdict.
    confirmed: bool,
    /// Device with this MAC address.
    device_id: Option<Id>,
    /// Status of the device; `new` without one.
    status: DeviceStatus,
    /// Path of its traffic to the internet now; null if its interface forwards nothing.
    path: Option<ObservedPath>,
    /// Traffic between the host and this gateway now. Null if it is not known: nothing was measured yet, the host is offline or has
    /// never answered, or a driver forwards the packets of its interface by XDP, where no tap sees them.
    rate: Option<HostRate>,
}

/// Path of a host's traffic to the internet, of the address family that exposes more.
#[derive(Debug, Serialize, JsonSchema)]
pub(super) struct ObservedPath {
    decision: Decision,
    /// Counted so in the verdict of `/status`, if the host has answered and was seen in the last 24 hours.
    treatment: Treatment,
    /// Policy that decides, or the profile or bridge in its place; null if none does.
    policy: Option<PolicyRef>,
    /// Egress: `vpn:wg-a`, `proxy:office`, `interface:wan0`, `default`. Null if the traffic does not leave.
    egress: Option<String>,
    /// The answer of `/policy/evaluate` in one sentence.
    sentence: String,
}

fn schema(generator: &mut SchemaGenerator) -> Schema {
    generator.subschema_for::<ObservedHost>()
}

/// Hosts at one instant, with what is needed to show them.
struct View {
    world: World,
    hosts: std::sync::Arc<HostList>,
    rates: HostRates,
    dns_names: DnsNames,
    internet: [IpAddr; 2],
    uplinks: BTreeMap<LegId, String>,
}

impl View {
    fn new(open: &Open) -> View {
        let world = open.world();
        let inventory = &open.handles.get::<HostInventory>();
        let (hosts, rates) = (inventory.list(), inventory.rates().clone());
        let dns_names = DnsNames::of(&world.state);
        let (internet, uplinks) = (internet(world.live()), uplinks(&world.input(), world.live()));
        View { world, hosts, rates, dns_names, internet, uplinks }
    }

    fn find(&self, id: &str) -> Result<&Host, ApiError> {
        let found = id.parse().ok().and_then(|id: Id| self.hosts.find(id));
        found.ok_or_else(|| ApiError::not_found(NOUN, id))
    }

    fn show(&self, host: &Host) -> ObservedHost {
        let World { state, now, .. } = &self.world;
        let device = state.device_by_mac(host.mac);
        ObservedHost {
            id: host.id(),
            mac: host.mac,
            ips: host.ips().collect(),
            names: self.dns_names.with_own(host),
            vendor: vendor(host.mac).map(str::to_owned),
            vendor_class: host.vendor_class.clone(),
            randomized_mac: host.mac.is_local(),
            interface: host.interface.clone(),
            vlan: host.vlan,
            first_seen: host.first_seen,
            last_seen: host.last_seen,
            online: host.is_online(*now),
            confirmed: host.is_confirmed(),
            device_id: device.map(|device| device.meta.id),
            status: device.map_or(DeviceStatus::New, |device| device.status),
            path: self.path(host),
            rate: self.rates.of(&host.interface, host.mac),
        }
    }

    fn path(&self, host: &Host) -> Option<ObservedPath> {
        let host =
            PresentHost { interface: host.interface.clone(), mac: host.mac, ips: host.ips().collect() };
        let path = host_path(&self.world.input(), self.world.live(), &host, self.internet, &self.uplinks)?;
        Some(ObservedPath {
            decision: path.decision,
            treatment: path.treatment,
            policy: path.policy,
            egress: path.via,
            sentence: path.sentence,
        })
    }
}

async fn list(cx: Cx, request: Req<()>) -> Result<WithHeaders<Vec<ObservedHost>>, ApiError> {
    blocking(move || {
        let view = View::new(cx.open()?);
        let conditions = request.query.0.iter().filter(|(name, _)| name != "limit").cloned();
        let conditions: Vec<_> = conditions.collect();
        let filter = (!conditions.is_empty()).then(|| Filter::new(conditions));
        let is_match =
            |host: &ObservedHost| filter.as_ref().is_none_or(|filter| filter.matches(&json!(host)));
        let shown = view.hosts.hosts.iter().map(|host| view.show(host));
        let mut hosts: Vec<ObservedHost> = shown.filter(is_match).collect();
        hosts.sort_by_key(|host| (!host.online, std::cmp::Reverse(host.last_seen), host.id));
        let total = hosts.len();
        hosts.truncate(request.query.read::<ListQuery>()?.limit());
        let mut reply = WithHeaders::new(hosts);
        reply.total = Some(total);
        Ok(reply)
    })
    .await?
}

async fn one(cx: Cx, request: Req<()>) -> Result<ObservedHost, ApiError> {
    blocking(move || {
        let view = View::new(cx.open()?);
        Ok(view.show(view.find(request.params.get("id"))?))
    })
    .await?
}

/// Fields of the device. Those that are not given are those of the host.
#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(default)]
pub(super) struct Adoption {
    #[serde(flatten)]
    device: Map<String, Value>,
}

/// Returns the schema of a new device, of which no field is required.
fn adoption_schema(generator: &mut SchemaGenerator) -> Schema {
    let mut schema = registry::input_schema::<Device>(generator);
    schema.remove("required");
    let name = "HostAdoption";
    generator.definitions_mut().entry(name.to_owned()).or_insert_with(|| schema.to_value());
    Schema::new_ref(format!("#/components/schemas/{name}"))
}

async fn adopt(cx: Cx, request: Req<Adoption>) -> Result<Object<Device>, ApiError> {
    blocking(move || {
        let open = cx.open()?;
        let view = View::new(open);
        let host = view.find(request.params.get("id"))?;
        let dns_names = view.dns_names.with_own(host);
        let input = Value::Object(with_defaults(request.input.device, host, &dns_names));
        let kind = const { &Kind::of::<Device>() };
        let written: Written = cx.commit_blocking(|draft| kind.create(draft, input))?;
        let state = open.store.current();
        let mut reply = shown(open, &state, Some(LIVE), written.value, written.revision);
        reply.status = StatusCode::CREATED;
        reply.location = Some(format!("/devices/{}", written.id));
        reply.warnings = written.warnings;
        Ok(Object::new(reply))
    })
    .await?
}

/// Adds the fields of the host that the body does not have.
fn with_defaults(mut device: Map<String, Value>, host: &Host, names: &[HostName]) -> Map<String, Value> {
    let mac = host.mac.to_string();
    let is_given =
        |device: &Map<String, Value>, key: &str| device.get(key).is_some_and(|value| !value.is_null());
    if !is_given(&device, "name") {
        device.insert("name".to_owned(), default_name(host, names).into());
    }
    let is_it = |value: &Value| value.as_str().and_then(|text| text.parse().ok()) == Some(host.mac);
    if !is_given(&device, "mac") {
        device.insert("mac".to_owned(), mac.into());
    } else if !device.get("mac").is_some_and(is_it)
        && let Value::Array(macs) = device.entry("macs").or_insert_with(|| json!([]))
        && !macs.iter().any(is_it)
    {
        macs.push(mac.into());
    }
    let sent = host.names.iter().find(|name| name.from == NameSource::Dhcp);
    if let Some(sent) = sent.filter(|name| is_host_name(&name.name))
        && !is_given(&device, "hostname")
    {
        device.insert("hostname".to_owned(), sent.name.clone().into());
    }
    device
}

/// Returns a name for the device of a host: that of the administrator, its own, or the vendor with the end of the MAC address.
fn default_name(host: &Host, names: &[HostName]) -> String {
    let [.., d, e, f] = host.mac.octets();
    let given = names.iter().find(|name| name.from == NameSource::Dns).map(|name| name.name.as_str());
    match (given.or_else(|| host.best_name()), vendor(host.mac)) {
        (Some(name), _) => name.to_owned(),
        (None, Some(vendor)) => format!("{vendor} {d:02x}:{e:02x}:{f:02x}"),
        (None, None) => host.mac.to_string(),
    }
}

async fn forget(cx: Cx, request: Req<()>) -> Result<Deleted, ApiError> {
    let open = cx.open()?;
    let text = request.params.get("id");
    let id = text.parse().ok().filter(|id| open.handles.get::<HostInventory>().forget(*id));
    let id: Id = id.ok_or_else(|| ApiError::not_found(NOUN, text))?;
    open.handles.get::<HostInventory>().publish(&open.worlds, open.now());
    Ok(Deleted { id: id.to_string(), deleted: true })
}
