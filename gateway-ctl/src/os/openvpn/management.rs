//! The management protocol of OpenVPN: its lines as values, and commands as lines. Pure.

use std::net::{IpAddr, SocketAddr};

use gateway_model::ovpn::quoted;

/// A line of the process, as far as the gateway uses it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Message {
    /// The process waits for its release.
    Hold,
    State(State),
    Bytes {
        received: u64,
        sent: u64,
    },
    /// The process asks for the address of this server.
    Remote(Remote),
    SecretRequest(SecretRequest),
    /// The credential that the server or the key rejected: `Auth`, `Private Key`, or a text of the server.
    Refused(String),
    Fatal(String),
    /// The server requires interactive authentication.
    Asks,
    Other,
}

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct State {
    pub name: String,
    /// Reason, for `RECONNECTING` and `EXITING`.
    pub detail: String,
    /// Local addresses inside the tunnel.
    pub addresses: Vec<IpAddr>,
    pub remote: Option<SocketAddr>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Remote {
    pub host: String,
    pub port: u16,
    /// `udp`, `udp4`, `tcp-client`, ...
    pub protocol: String,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum SecretRequest {
    Credentials,
    /// Credentials and a one-time code.
    Code,
    Passphrase,
    /// An unknown request.
    Else,
}

impl Message {
    pub(super) fn parse(line: &str) -> Message {
        let Some((kind, rest)) = line.strip_prefix('>').and_then(|line| line.split_once(':')) else {
            return Message::Other;
        };
        match kind {
            "HOLD" => Message::Hold,
            "STATE" => state(rest),
            "BYTECOUNT" => bytes(rest),
            "REMOTE" => remote(rest),
            "PASSWORD" => password(rest),
            "FATAL" => Message::Fatal(rest.to_owned()),
            "INFOMSG" | "NEED-OK" | "NEED-STR" | "PK_SIGN" => Message::Asks,
            _ => Message::Other,
        }
    }
}

fn state(rest: &str) -> Message {
    let fields: Vec<&str> = rest.split(',').collect();
    let field = |index: usize| fields.get(index).copied().unwrap_or_default();
    let address = |index: usize| field(index).parse::<IpAddr>().ok();
    let remote = address(4).zip(field(5).parse().ok()).map(SocketAddr::from);
    Message::State(State {
        name: field(1).to_owned(),
        detail: field(2).to_owned(),
        addresses: [address(3), address(8)].into_iter().flatten().collect(),
        remote,
    })
}

fn bytes(rest: &str) -> Message {
    let numbers = rest.split_once(',').and_then(|(r, s)| Some((r.parse().ok()?, s.parse().ok()?)));
    numbers.map_or(Message::Other, |(received, sent)| Message::Bytes { received, sent })
}

fn remote(rest: &str) -> Message {
    let mut fields = rest.rsplitn(3, ',');
    let (protocol, port, host) = (fields.next(), fields.next(), fields.next());
    match (host, port.and_then(|port| port.parse().ok()), protocol) {
        (Some(host), Some(port), Some(protocol)) => {
            Message::Remote(Remote { host: host.to_owned(), port, protocol: protocol.to_owned() })
        }
        _ => Message::Other,
    }
}

fn password(rest: &str) -> Message {
    if let Some(need) = rest.strip_prefix("Need '") {
        return Message::SecretRequest(match need {
            need if need.contains("' username/password SC:") => SecretRequest::Code,
            need if need.starts_with("Auth' username/password") => SecretRequest::Credentials,
            need if need.starts_with("Private Key'") => SecretRequest::Passphrase,
            _ => SecretRequest::Else,
        });
    }
    match rest.strip_prefix("Verification Failed: ") {
        Some(what) => {
            // `'Auth'`, sometimes followed by the server's text.
            let what = what.trim_matches(|c| matches!(c, '\'' | '[' | ']'));
            let what = what.split('\'').next().unwrap_or_default();
            Message::Refused(what.to_owned())
        }
        // Auth-Token: a secret for the process alone.
        None => Message::Other,
    }
}

/// Commands, one per line.
pub(crate) mod command {
    use super::{SocketAddr, quoted};

    pub(crate) fn watch() -> String {
        "state on\nbytecount 1\n".to_owned()
    }

    pub(crate) fn release() -> String {
        "hold release\n".to_owned()
    }

    pub(crate) fn remote(at: SocketAddr) -> String {
        format!("remote MOD {} {}\n", at.ip(), at.port())
    }

    pub(crate) fn skip() -> String {
        "remote SKIP\n".to_owned()
    }

    pub(crate) fn username(name: &str) -> zeroize::Zeroizing<String> {
        zeroize::Zeroizing::new(format!("username \"Auth\" {}\n", quoted(name)))
    }

    /// Returns the reply with a password. `of` is the name that the process gave it.
    pub(crate) fn password(of: &str, password: &str) -> zeroize::Zeroizing<String> {
        zeroize::Zeroizing::new(format!("password \"{of}\" {}\n", quoted(password)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn states_carry_the_addresses_of_both_families() {
        let line = ">STATE:1795279784,CONNECTED,SUCCESS,10.77.0.2,192.0.2.1,1194,,,fd77::1000";
        let expected = State {
            name: "CONNECTED".into(),
            detail: "SUCCESS".into(),
            addresses: vec!["10.77.0.2".parse().unwrap(), "fd77::1000".parse().unwrap()],
            remote: "192.0.2.1:1194".parse().ok(),
        };
        assert_eq!(Message::parse(line), Message::State(expected));
        let Message::State(state) = Message::parse(">STATE:1,RECONNECTING,ping-restart,,,,,") else {
            panic!()
        };
        assert_eq!((state.detail.as_str(), state.addresses.len()), ("ping-restart", 0));
        assert_eq!(Message::parse(">STATE:"), Message::State(State::default()));
    }

    #[test]
    fn requests_are_distinguished() {
        let cases = [
            (">PASSWORD:Need 'Auth' username/password", Message::SecretRequest(SecretRequest::Credentials)),
            (
                ">PASSWORD:Need 'Auth' username/password SC:1,Code?",
                Message::SecretRequest(SecretRequest::Code),
            ),
            (">PASSWORD:Need 'Private Key' password", Message::SecretRequest(SecretRequest::Passphrase)),
            (">PASSWORD:Need 'HTTP Proxy' username/password", Message::SecretRequest(SecretRequest::Else)),
            (">PASSWORD:Verification Failed: 'Auth'", Message::Refused("Auth".into())),
            (">PASSWORD:Verification Failed: 'Private Key'", Message::Refused("Private Key".into())),
            (">PASSWORD:Verification Failed: 'Auth' ['expired']", Message::Refused("Auth".into())),
            (">PASSWORD:Auth-Token:secret", Message::Other),
            (">HOLD:Waiting for hold release:10", Message::Hold),
            (">BYTECOUNT:12,34", Message::Bytes { received: 12, sent: 34 }),
            (">BYTECOUNT:12", Message::Other),
            (">FATAL:no", Message::Fatal("no".into())),
            ("SUCCESS: hold release succeeded", Message::Other),
            ("", Message::Other),
        ];
        for (line, expected) in cases {
            assert_eq!(Message::parse(line), expected, "{line}");
        }
        let remote = Remote { host: "2001:db8::1".into(), port: 1194, protocol: "udp".into() };
        assert_eq!(Message::parse(">REMOTE:2001:db8::1,1194,udp"), Message::Remote(remote));
        assert_eq!(Message::parse(">REMOTE:x,y,udp"), Message::Other);
    }

    #[test]
    fn a_password_cannot_become_a_command() {
        assert_eq!(command::password("Auth", "a\"b\\c d").as_str(), "password \"Auth\" \"a\\\"b\\\\c d\"\n");
        assert_eq!(command::username("alice").as_str(), "username \"Auth\" alice\n");
        let at = "[2001:db8::1]:443".parse().unwrap();
        assert_eq!(command::remote(at), "remote MOD 2001:db8::1 443\n");
    }
}
