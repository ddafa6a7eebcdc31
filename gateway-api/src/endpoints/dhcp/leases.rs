//! `GET /dhcp/leases`.

use std::collections::BTreeMap;
use std::net::Ipv4Addr;

use gateway_core::hexadecimal::hex_with_colons;
use gateway_core::state_machines::dhcp::LeaseStatus;
use gateway_ctl::services::dhcp::{DhcpServer, ShownLease};
use gateway_model::filter::Filter;
use gateway_model::{Id, MacAddr, State};
use jiff::Timestamp;
use schemars::{JsonSchema, Schema, SchemaGenerator};
use serde::Serialize;
use serde_json::json;

use crate::blocking::blocking;
use crate::context::Cx;
use crate::error::ApiError;
use crate::query::parameters::ListQuery;
use crate::reply::WithHeaders;
use crate::request::Req;

/// Lease of an address.
#[derive(Debug, Serialize, JsonSchema)]
pub(super) struct DhcpLease {
    /// MAC address of the client; of a declined address that of the host that uses it, or of the client that declined it.
    mac: MacAddr,
    ip: Ipv4Addr,
    /// Host name that the client sent, as a label, or that its reservation gives it.
    hostname: Option<String>,
    /// Identifier that the client sent, in hexadecimal digits.
    client_id: Option<String>,
    /// Vendor class that the client sent.
    vendor_class: Option<String>,
    starts_at: Timestamp,
    /// End of the lease, or of the time in which a declined address is not given out.
    expires_at: Timestamp,
    state: LeaseStatus,
    /// It is the address of a reservation.
    reserved: bool,
    /// Device with this MAC address.
    device_id: Option<Id>,
}

/// Schema of one lease. The fields are filters.
pub(super) fn schema(generator: &mut SchemaGenerator) -> Schema {
    generator.subschema_for::<DhcpLease>()
}

pub(super) async fn list(cx: Cx, request: Req<()>) -> Result<WithHeaders<Vec<DhcpLease>>, ApiError> {
    blocking(move || {
        let open = cx.open()?;
        let state = open.store.current();
        let conditions = request.query.0.iter().filter(|(name, _)| name != "limit").cloned();
        let conditions: Vec<_> = conditions.collect();
        let filter = (!conditions.is_empty()).then(|| Filter::new(conditions));
        let leases = open.handles.get::<DhcpServer>().leases(open.now());
        let devices = devices(&state);
        let shown = leases.into_iter().map(|lease| shown(lease, &devices));
        let is_match = |lease: &DhcpLease| filter.as_ref().is_none_or(|filter| filter.matches(&json!(lease)));
        let mut leases: Vec<DhcpLease> = shown.filter(is_match).collect();
        let total = leases.len();
        leases.truncate(request.query.read::<ListQuery>()?.limit());
        let mut reply = WithHeaders::new(leases);
        reply.total = Some(total);
        Ok(reply)
    })
    .await?
}

/// Returns the ids of devices by MAC address: by their records, else by reservations.
fn devices(state: &State) -> BTreeMap<MacAddr, Id> {
    let reserved = state
        .dhcp_reservations
        .iter()
        .filter_map(|reservation| Some((reservation.mac?, reservation.device_id?)));
    let recorded = state
        .devices
        .iter()
        .flat_map(|device| device.all_macs().into_iter().map(|mac| (mac, device.meta.id)));
    reserved.chain(recorded).collect()
}

fn shown(shown: ShownLease, devices: &BTreeMap<MacAddr, Id>) -> DhcpLease {
    let ShownLease { lease, status, is_reserved } = shown;
    let time = |second| Timestamp::from_second(second).unwrap_or(Timestamp::MAX);
    DhcpLease {
        mac: lease.mac,
        ip: lease.address,
        hostname: lease.hostname.map(Into::into),
        client_id: lease.client_id.as_deref().map(hex_with_colons),
        vendor_class: lease.vendor_class.map(Into::into),
        starts_at: time(lease.starts),
        expires_at: time(lease.ends),
        state: status,
        reserved: is_reserved,
        device_id: devices.get(&lease.mac).copied(),
    }
}
