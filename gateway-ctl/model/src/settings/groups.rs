//! The groups of settings, one module per area.

mod alert_email;
mod alert_mqtt;
mod alerts;
mod assistant;
mod backup;
mod bluetooth;
mod captive;
mod cover;
mod deadman;
mod dhcp;
mod dns;
mod extfilter;
mod federation_bus;
mod flow_export;
mod interfaces;
mod leak_check;
mod privacy;
mod privacy_blocks;

pub use alert_email::{AlertEmail, MailSecurity};
pub use alert_mqtt::AlertMqtt;
pub use alerts::{AlertWebhook, Severity, WebhookFormat, with_token};
pub use assistant::{AssistantConfig, AssistantKind};
pub use backup::{BackupConfig, BackupTarget, Include, PASSPHRASE_MIN, TargetType, host_key_fingerprint};
pub use bluetooth::{BluetoothFailover, BluetoothSettings, PAN_INTERFACE};
pub use captive::{CaptiveCheck, CaptiveTarget};
pub use cover::{CoverMachine, CoverSettings};
pub use deadman::{DeadmanSettings, WipeLevel};
pub use dhcp::{AddressRange, DhcpConfig, DhcpOption};
pub use dns::{DnsRotation, RotationMode};
pub use extfilter::ExtFilterConfig;
pub use federation_bus::{FederationBus, HubAddress};
pub use flow_export::{FlowExport, IpfixCollector, IpfixTransport, OtlpCollector, SyslogCollector};
pub use interfaces::{InterfaceConfig, InterfaceMethod, InterfacesConfig};
pub use leak_check::LeakCheckSettings;
pub use privacy::{DnsMode, PrivacyMode};
pub use privacy_blocks::{BlockScope, HostBlocks, PrivacyBlocks};

use crate::problem::{Problems, code};

/// Reports a text that is not the address of an HTTP server.
fn check_url(path: &str, url: &str, problems: &mut Problems) -> Option<url::Url> {
    match url::Url::parse(url) {
        Ok(url) if matches!(url.scheme(), "http" | "https") && url.has_host() => {
            if url.username().is_empty() && url.password().is_none() {
                return Some(url);
            }
            problems.add(
                code::FORMAT,
                path,
                "A user and a password do not belong into the address: it is shown.",
            );
        }
        Ok(_) => {
            problems.add(code::FORMAT, path, "Expected an address that begins with http:// or https://.");
        }
        Err(error) => {
            problems.add(code::FORMAT, path, format!("Not a URL: {error}."));
        }
    }
    None
}

fn check_range(path: &str, value: u64, range: std::ops::RangeInclusive<u64>, problems: &mut Problems) {
    if !range.contains(&value) {
        let (from, to) = range.into_inner();
        problems.add(code::RANGE, path, format!("Must be from {from} to {to}."));
    }
}
