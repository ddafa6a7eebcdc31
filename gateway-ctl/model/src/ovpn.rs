//! OpenVPN client files (`.ovpn`): text to a value and back.
//!
//! Only directives of a fixed list are kept, with arguments of the expected form, so OpenVPN gets nothing that was not
//! parsed here. Commands, plugins, routes, name servers and the like are left out and reported in [`Ovpn::dropped`].
//! Directives without which the tunnel would not work or not be safe, above all files, are an error. This module does
//! no I/O and resolves no names.

mod directive;
mod line;
mod parse;
mod render;
mod token;

use std::fmt;

use crate::secret::Secret;
use crate::validated::{Host, text_enum};

pub use parse::{MAX_SIZE, parse};
pub use render::{Run, render, run_text};
pub use token::quoted;

/// The contents of one file.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Ovpn {
    /// Remote ends, in the order in which they are tried.
    pub remotes: Vec<Remote>,
    pub directives: Vec<Directive>,
    pub blocks: Vec<Block>,
    /// The server is given a user name and a password.
    pub asks_credentials: bool,
    /// Blocks that are in the file itself.
    pub credentials: Option<Credentials>,
    /// Directives that were dropped and may be missed, in order of appearance.
    pub dropped: Vec<Dropped>,
}

/// A server.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Remote {
    pub host: Host,
    pub port: u16,
    pub transport: Transport,
    /// Directives of its `<connection>` block, for this server only.
    pub options: Vec<Directive>,
}

text_enum! {
    #[derive(Default)]
    pub enum Transport {
        #[default]
        Udp = "udp",
        Udp4 = "udp4",
        Udp6 = "udp6",
        Tcp = "tcp-client",
        Tcp4 = "tcp4-client",
        Tcp6 = "tcp6-client",
    }
}

/// Directive that was kept, with checked arguments.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Directive {
    pub name: &'static str,
    pub arguments: Vec<String>,
}

/// Text between `<ca>` and `</ca>`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Block {
    pub tag: Tag,
    pub text: Secret,
}

text_enum! {
    /// Name of the block.
    pub enum Tag {
        Ca = "ca",
        Cert = "cert",
        Key = "key",
        ExtraCerts = "extra-certs",
        Pkcs12 = "pkcs12",
        TlsAuth = "tls-auth",
        TlsCrypt = "tls-crypt",
        TlsCryptV2 = "tls-crypt-v2",
        CrlVerify = "crl-verify",
        PeerFingerprint = "peer-fingerprint",
    }
}

impl Tag {
    /// Reports whether the block holds a key.
    pub const fn is_secret(self) -> bool {
        matches!(self, Tag::Key | Tag::Pkcs12 | Tag::TlsAuth | Tag::TlsCrypt | Tag::TlsCryptV2)
    }
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Credentials {
    pub username: Secret,
    pub password: Secret,
}

/// A directive that was left out.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Dropped {
    pub line: usize,
    pub name: String,
    pub why: &'static str,
}

impl fmt::Display for Dropped {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Dropped { line, name, why } = self;
        write!(f, "Line {line}: {name} was left out: {why}.")
    }
}

/// Fault and its line. Line 0 means the text as a whole. Never quotes an argument, which may be a secret.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OvpnError {
    pub line: usize,
    /// The directive or block; empty if it is none.
    pub name: String,
    pub problem: String,
}

impl fmt::Display for OvpnError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.line > 0 {
            write!(f, "line {}: ", self.line)?;
        }
        if !self.name.is_empty() {
            write!(f, "{}: ", self.name)?;
        }
        f.write_str(&self.problem)
    }
}

impl std::error::Error for OvpnError {}

/// Directives by which a client knows its server.
pub const SERVER_CHECKS: [&str; 7] = [
    "remote-cert-tls",
    "ns-cert-type",
    "verify-x509-name",
    "remote-cert-eku",
    "remote-cert-ku",
    "peer-fingerprint",
    "verify-hash",
];

impl fmt::Display for Remote {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let transport = match self.transport {
            Transport::Udp | Transport::Udp4 | Transport::Udp6 => "udp",
            Transport::Tcp | Transport::Tcp4 | Transport::Tcp6 => "tcp",
        };
        let endpoint = crate::validated::Endpoint { host: self.host.clone(), port: self.port };
        write!(f, "{endpoint}/{transport}")
    }
}

impl Ovpn {
    /// The last argument that counts of a directive.
    pub fn argument(&self, name: &str) -> Option<&str> {
        let last = self.directives.iter().rfind(|directive| directive.name == name)?;
        last.arguments.first().map(String::as_str)
    }

    pub fn has(&self, name: &str) -> bool {
        self.directives.iter().any(|directive| directive.name == name)
    }

    pub fn block(&self, tag: Tag) -> Option<&Block> {
        self.blocks.iter().find(|block| block.tag == tag)
    }

    /// The cipher that the client would like best; none if it leaves that to OpenVPN.
    pub fn cipher(&self) -> Option<&str> {
        let list = self.argument("data-ciphers").or_else(|| self.argument("cipher"))?;
        list.split(':').map(|cipher| cipher.trim_start_matches('?')).find(|cipher| !cipher.is_empty())
    }

    /// The servers as a text that changes with them.
    pub fn servers(&self) -> String {
        self.remotes.iter().map(ToString::to_string).collect::<Vec<_>>().join(" ")
    }

    /// Identity that a server must prove, as a text that changes with it.
    pub fn server_identity(&self) -> String {
        let checks = self.directives.iter().filter(|directive| SERVER_CHECKS.contains(&directive.name));
        let checks =
            checks.map(|directive| format!("{} {}\n", directive.name, directive.arguments.join(" ")));
        let trusted = [Tag::Ca, Tag::ExtraCerts, Tag::Pkcs12, Tag::PeerFingerprint, Tag::CrlVerify];
        let blocks = self.blocks.iter().filter(|block| trusted.contains(&block.tag));
        checks.chain(blocks.map(|block| format!("{}\n{}\n", block.tag, block.text.expose()))).collect()
    }

    /// Returns the MTU that fits whichever server is used.
    pub fn tun_mtu(&self) -> Option<u16> {
        let number = |directive: &Directive| directive.arguments.first()?.parse().ok();
        let own = |remote: &Remote| number(remote.options.iter().rfind(|option| option.name == "tun-mtu")?);
        let of_all = self.argument("tun-mtu").and_then(|text| text.parse().ok());
        self.remotes.iter().filter_map(own).chain(of_all).min()
    }
}

#[cfg(test)]
mod tests;
