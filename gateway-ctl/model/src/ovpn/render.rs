//! A file to text: for people, and for OpenVPN.

use std::fmt::Write;

use zeroize::Zeroizing;

use super::line::{HIDDEN, line};
use super::token::quoted;
use super::{Ovpn, Remote};

/// Options for a run of OpenVPN, in addition to the file.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Run {
    /// Seconds between pings, unless the file or the server sets them; 0 for none.
    pub ping: u16,
}

/// Options that a server may push. All others are ignored: routes, name servers, commands to this host.
const ACCEPTED: &[&str] = &[
    "ifconfig ",
    "ifconfig-ipv6 ",
    "topology ",
    // Of no effect here; shown as refused they would only be noise.
    "tun-ipv6",
    "route-gateway ",
    "tun-mtu ",
    "ping ",
    "ping-restart ",
    "peer-id ",
    "cipher ",
    "auth-token ",
    "auth-token-user ",
    "key-derivation ",
    "protocol-flags ",
    "push-continuation ",
    "comp-lzo",
    "compress",
    "explicit-exit-notify",
    "reneg-sec ",
    "sndbuf ",
    "rcvbuf ",
];

fn remote(remote: &Remote) -> String {
    let host = match &remote.host {
        crate::validated::Host::Address(address) => address.to_string(),
        crate::validated::Host::Name(name) => name.clone(),
    };
    format!("remote {host} {} {}", remote.port, remote.transport)
}

/// The file as it is obeyed; keys and credentials read `***` unless they are to be revealed.
pub fn render(file: &Ovpn, reveal: bool) -> Zeroizing<String> {
    let mut text = Zeroizing::new(String::new());
    lines(file, &mut text);
    if let Some(credentials) = &file.credentials {
        let shown =
            |secret: &crate::Secret| if reveal { secret.expose().to_owned() } else { HIDDEN.to_owned() };
        let (username, password) = (shown(&credentials.username), shown(&credentials.password));
        push(&mut text, format_args!("<auth-user-pass>\n{username}\n{password}\n</auth-user-pass>"));
    } else if file.asks_credentials {
        push(&mut text, format_args!("auth-user-pass"));
    }
    blocks(file, reveal, &mut text);
    text
}

/// Returns the file for OpenVPN: without its credentials, which are passed on request, and with the list of options
/// that the server may push.
pub fn run_text(file: &Ovpn, run: Run) -> Zeroizing<String> {
    let mut text = Zeroizing::new(String::new());
    // The gateway resolves the names, and gives OpenVPN an address, in front of which a label means nothing.
    let mut file = file.clone();
    file.directives.retain(|directive| directive.name != "remote-random-hostname");
    let file = &file;
    lines(file, &mut text);
    if file.asks_credentials {
        push(&mut text, format_args!("auth-user-pass"));
    }
    let pings = ["ping", "ping-restart", "keepalive"].iter().any(|name| file.has(name));
    if !pings && run.ping > 0 {
        let restart = u32::from(run.ping).saturating_mul(4).max(60);
        push(&mut text, format_args!("ping {}\nping-restart {restart}", run.ping));
    }
    for accepted in ACCEPTED {
        push(&mut text, format_args!("pull-filter accept {}", quoted(accepted)));
    }
    push(&mut text, format_args!("pull-filter ignore \"\""));
    blocks(file, true, &mut text);
    text
}

fn lines(file: &Ovpn, text: &mut String) {
    // A block has the options that were set before it.
    file.directives.iter().for_each(|directive| push(text, format_args!("{}", line(directive))));
    let has_blocks = file.remotes.iter().any(|server| !server.options.is_empty());
    for server in &file.remotes {
        if !has_blocks {
            push(text, format_args!("{}", remote(server)));
            continue;
        }
        push(text, format_args!("<connection>\n{}", remote(server)));
        server.options.iter().for_each(|option| push(text, format_args!("{}", line(option))));
        push(text, format_args!("</connection>"));
    }
}

fn blocks(file: &Ovpn, reveal: bool, text: &mut String) {
    for block in &file.blocks {
        let shown = reveal || !block.tag.is_secret();
        let content = if shown { block.text.expose().trim_end() } else { HIDDEN };
        push(text, format_args!("<{0}>\n{content}\n</{0}>", block.tag));
    }
}

fn push(text: &mut String, line: std::fmt::Arguments<'_>) {
    // Writing to a string cannot fail.
    let _ = writeln!(text, "{line}");
}
