//! Control of the DHCP client of an interface.

use gateway_core::interfaces::InterfaceRole;
use gateway_ctl::os::dhcp_client;
use gateway_ctl::reconcile::Reason;
use gateway_ctl::services::dhcp_clients::DhcpControl;
use gateway_model::settings::groups::{InterfaceConfig, InterfaceMethod, InterfacesConfig};
use gateway_model::{IfName, State};
use schemars::JsonSchema;
use serde::Serialize;

use super::config::{DhcpView, dhcp_view, store};
use super::named::{named, protected};
use crate::context::Cx;
use crate::error::{ApiError, Code};
use crate::request::Req;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Command {
    Start,
    Stop,
    Renew,
}

/// DHCP client after the command.
#[derive(Debug, Serialize, JsonSchema)]
#[schemars(rename = "DhcpClientState")]
pub(super) struct ClientState {
    name: String,
    method: InterfaceMethod,
    /// Null if no client runs yet, or no more.
    dhcp: Option<DhcpView>,
}

pub(super) async fn control(cx: Cx, request: Req<()>, command: Command) -> Result<ClientState, ApiError> {
    let open = cx.open()?;
    let (name, role) = named(&open.world(), request.params.get("name"))?;
    if role != InterfaceRole::Other {
        return Err(protected(&name, role, "the daemon runs no DHCP client there"));
    }
    match command {
        Command::Start => {
            if dhcp_client::program().is_none() {
                return Err(ApiError::not_supported("the program udhcpc, which is not installed"));
            }
            switch(&cx, &name, InterfaceMethod::None, InterfaceMethod::Dhcp).await?;
        }
        Command::Stop => switch(&cx, &name, InterfaceMethod::Dhcp, InterfaceMethod::None).await?,
        Command::Renew => {
            if method_of(&open.store.current(), &name) != InterfaceMethod::Dhcp {
                return Err(not_by_dhcp(&name));
            }
            // One that has not started yet asks for a lease by itself.
            open.handles.get::<DhcpControl>().renew(name.as_str());
        }
    }
    let world = open.world();
    let state = world.reports.dhcp_clients.clients.get(name.as_str());
    Ok(ClientState {
        method: method_of(&world.state, &name),
        dhcp: state.filter(|_| command != Command::Stop).map(|state| dhcp_view(&world, name.as_str(), state)),
        name: name.to_string(),
    })
}

fn method_of(state: &State, name: &IfName) -> InterfaceMethod {
    let all: InterfacesConfig = state.group();
    all.0.get(name).map(|config| config.method).unwrap_or_default()
}

fn not_by_dhcp(name: &IfName) -> ApiError {
    let message = format!("The method of {name} is not dhcp, so no client runs there.");
    ApiError::new(Code::InvalidState, message).detail("interface", name.as_str())
}

/// Stores another method, and applies it. The method `to` is fine already.
async fn switch(cx: &Cx, name: &IfName, from: InterfaceMethod, to: InterfaceMethod) -> Result<(), ApiError> {
    let method = method_of(&cx.open()?.store.current(), name);
    if method == to && to == InterfaceMethod::Dhcp {
        return Ok(());
    }
    if method != from {
        let message = format!("The method of {name} is {method}, not {from}.");
        return Err(ApiError::new(Code::InvalidState, message).detail("state", method.as_str()));
    }
    let edited = name.clone();
    let edit = move |draft: &mut State| {
        let all: InterfacesConfig = draft.group();
        let config = all.0.get(&edited).cloned().unwrap_or_default();
        // Another request may have changed it meanwhile: that one is newer.
        if config.method != from {
            return Ok(());
        }
        store(draft, &edited, InterfaceConfig { method: to, ..config }).map(drop)
    };
    cx.commit(edit).await?;
    cx.open()?.reconcile(Reason::Revision).await.map(drop)
}
