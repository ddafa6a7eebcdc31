//! A value back to `.conf` text.

use std::fmt::{Display, Write};

use super::{Key, WgConf, encode_key};

const HIDDEN: &str = "***";

/// The canonical text of a configuration. Secrets read `***` unless `reveal`; ignored keys are left out.
pub fn render(conf: &WgConf, reveal: bool) -> String {
    let WgConf { private_key, addresses, dns, mtu, listen_port, peers, ignored: _ } = conf;
    let mut out = String::from("[Interface]\n");
    line(&mut out, "PrivateKey", secret(private_key, reveal));
    list(&mut out, "Address", addresses);
    list(&mut out, "DNS", dns);
    optional(&mut out, "MTU", mtu.as_ref());
    optional(&mut out, "ListenPort", listen_port.as_ref());
    for peer in peers {
        let super::WgConfPeer { public_key, preshared_key, endpoint, allowed_ips, persistent_keepalive } =
            peer;
        out.push_str("\n[Peer]\n");
        line(&mut out, "PublicKey", encode_key(public_key));
        if let Some(key) = preshared_key {
            line(&mut out, "PresharedKey", secret(key, reveal));
        }
        optional(&mut out, "Endpoint", endpoint.as_ref());
        list(&mut out, "AllowedIPs", allowed_ips);
        optional(&mut out, "PersistentKeepalive", persistent_keepalive.as_ref());
    }
    out
}

fn secret(key: &Key, reveal: bool) -> String {
    if reveal { key.to_base64().to_string() } else { HIDDEN.to_owned() }
}

fn line(out: &mut String, key: &str, value: impl Display) {
    // Writing to a String cannot fail.
    let _ = writeln!(out, "{key} = {value}");
}

fn optional(out: &mut String, key: &str, value: Option<&impl Display>) {
    if let Some(value) = value {
        line(out, key, value);
    }
}

fn list(out: &mut String, key: &str, values: &[impl Display]) {
    if !values.is_empty() {
        let joined = values.iter().map(ToString::to_string).collect::<Vec<_>>().join(", ");
        line(out, key, joined);
    }
}
