//! Agent of this host: the daemon of BlueZ asks it for each pairing and each service.

use std::sync::Arc;

use futures_util::future::BoxFuture;
use gateway_core::bluetooth::pairing::{AgentReply, AgentRequest, shown_passkey};
use gateway_model::id::MacAddr;
use zbus::OwnedObjectPath;

use super::properties::mac_of_path;

/// Decisions on pairings and services.
pub(crate) trait PairingAgent: Send + Sync {
    /// Decides on a request of a device that pairs. It may wait for a user.
    fn decide(&self, mac: MacAddr, request: AgentRequest) -> BoxFuture<'_, AgentReply>;

    /// Reports whether a device may use a service of this host.
    fn allows_service(&self, mac: MacAddr, uuid: &str) -> bool;

    /// Notes that the daemon of BlueZ waits no more.
    fn cancel(&self);
}

/// Refusal in the words of BlueZ.
#[derive(Debug, zbus::DBusError)]
#[zbus(prefix = "org.bluez.Error")]
pub(super) enum AgentError {
    #[zbus(error)]
    ZBus(zbus::Error),
    Rejected(String),
}

pub(super) struct Agent(Arc<dyn PairingAgent>);

impl Agent {
    pub(super) fn new(agent: Arc<dyn PairingAgent>) -> Agent {
        Agent(agent)
    }

    async fn decide(
        &self,
        device: &OwnedObjectPath,
        request: AgentRequest,
    ) -> Result<AgentReply, AgentError> {
        let mac = mac_of_path(device.as_str()).ok_or_else(rejected)?;
        match self.0.decide(mac, request).await {
            AgentReply::Reject => Err(rejected()),
            reply => Ok(reply),
        }
    }
}

fn rejected() -> AgentError {
    AgentError::Rejected("the gateway refuses it".to_owned())
}

#[zbus::interface(name = "org.bluez.Agent1")]
impl Agent {
    async fn request_pin_code(&self, device: OwnedObjectPath) -> Result<String, AgentError> {
        match self.decide(&device, AgentRequest::Pin).await? {
            AgentReply::Pin(pin) => Ok(pin),
            AgentReply::Passkey(passkey) => Ok(shown_passkey(passkey)),
            AgentReply::Accept | AgentReply::Reject => Err(rejected()),
        }
    }

    async fn display_pin_code(&self, device: OwnedObjectPath, pincode: String) -> Result<(), AgentError> {
        self.decide(&device, AgentRequest::Display(pincode)).await.map(drop)
    }

    async fn request_passkey(&self, device: OwnedObjectPath) -> Result<u32, AgentError> {
        match self.decide(&device, AgentRequest::Passkey).await? {
            AgentReply::Passkey(passkey) => Ok(passkey),
            AgentReply::Pin(_) | AgentReply::Accept | AgentReply::Reject => Err(rejected()),
        }
    }

    /// `entered` counts the digits that were typed on the device so far.
    async fn display_passkey(
        &self,
        device: OwnedObjectPath,
        passkey: u32,
        entered: u16,
    ) -> Result<(), AgentError> {
        tracing::debug!(entered, "passkey is being entered on the device");
        self.decide(&device, AgentRequest::Display(shown_passkey(passkey))).await.map(drop)
    }

    async fn request_confirmation(&self, device: OwnedObjectPath, passkey: u32) -> Result<(), AgentError> {
        self.decide(&device, AgentRequest::Confirm(passkey)).await.map(drop)
    }

    async fn request_authorization(&self, device: OwnedObjectPath) -> Result<(), AgentError> {
        self.decide(&device, AgentRequest::Authorize).await.map(drop)
    }

    async fn authorize_service(&self, device: OwnedObjectPath, uuid: String) -> Result<(), AgentError> {
        let mac = mac_of_path(device.as_str()).ok_or_else(rejected)?;
        if self.0.allows_service(mac, &uuid) { Ok(()) } else { Err(rejected()) }
    }

    async fn cancel(&self) {
        self.0.cancel();
    }

    async fn release(&self) {}
}
