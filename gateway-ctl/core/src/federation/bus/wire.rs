//! Protocol of NATS, from the side of a client: what a server sends, and what it is sent. Nothing here reads or writes.

use std::{fmt, str};

use serde::{Deserialize, Serialize};

/// Longest line of control, in bytes. The greeting of a cluster names all of its servers.
const MAX_LINE_BYTES: usize = 32 << 10;
/// Headers of a message that carries an error of the server.
const STATUS_LINE: &[u8] = b"NATS/1.0 ";

/// Reason why bytes are not of the protocol.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum WireError {
    #[error("a line is longer than {MAX_LINE_BYTES} bytes")]
    LongLine,
    #[error("a message of {0} bytes is longer than the limit")]
    LongMessage(usize),
    #[error("a line is not of the protocol of NATS")]
    Line,
    #[error("a message does not end where it says")]
    End,
}

/// Greeting of a server.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(default)]
pub struct Greeting {
    pub server_id: String,
    pub version: String,
    pub max_payload: usize,
    pub headers: bool,
    pub auth_required: bool,
    pub tls_required: bool,
    pub tls_available: bool,
    /// Text that a key has to sign.
    pub nonce: String,
}

/// Message of a subscription.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Message {
    pub subject: String,
    pub subscription: u64,
    pub reply_to: Option<String>,
    /// Status of the server in place of a payload, such as 404 or 503.
    pub status: Option<u16>,
    pub payload: Vec<u8>,
}

/// Operation of a server.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Incoming {
    Greeting(Greeting),
    Message(Message),
    Ping,
    Pong,
    Ok,
    Error(String),
}

/// Reads the first operation of the bytes. Returns it with its length; `None` if more bytes are needed.
pub fn parse(bytes: &[u8], max_message: usize) -> Result<Option<(Incoming, usize)>, WireError> {
    let Some(end) = bytes.windows(2).take(MAX_LINE_BYTES).position(|pair| pair == b"\r\n") else {
        return if bytes.len() > MAX_LINE_BYTES { Err(WireError::LongLine) } else { Ok(None) };
    };
    let line = str::from_utf8(&bytes[..end]).map_err(|_| WireError::Line)?;
    let (name, rest) = line.split_once([' ', '\t']).unwrap_or((line, ""));
    let whole = |incoming| Ok(Some((incoming, end + 2)));
    match name.to_ascii_uppercase().as_str() {
        "PING" => whole(Incoming::Ping),
        "PONG" => whole(Incoming::Pong),
        "+OK" => whole(Incoming::Ok),
        "-ERR" => whole(Incoming::Error(rest.trim().trim_matches('\'').to_owned())),
        "INFO" => {
            let greeting = serde_json::from_str(rest.trim()).map_err(|_| WireError::Line)?;
            whole(Incoming::Greeting(greeting))
        }
        "MSG" => message(bytes, end + 2, rest, false, max_message),
        "HMSG" => message(bytes, end + 2, rest, true, max_message),
        _ => Err(WireError::Line),
    }
}

/// Reads a message whose line is `arguments`, and whose bytes begin at `start`.
fn message(
    bytes: &[u8],
    start: usize,
    arguments: &str,
    has_headers: bool,
    max_message: usize,
) -> Result<Option<(Incoming, usize)>, WireError> {
    let mut words: Vec<&str> = arguments.split_ascii_whitespace().collect();
    let mut number = || words.pop().and_then(|word| word.parse::<usize>().ok()).ok_or(WireError::Line);
    let total = number()?;
    let headers = if has_headers { number()? } else { 0 };
    let (subject, subscription, reply_to) = match *words {
        [subject, subscription] => (subject, subscription, None),
        [subject, subscription, reply_to] => (subject, subscription, Some(reply_to.to_owned())),
        _ => return Err(WireError::Line),
    };
    let subscription = subscription.parse().map_err(|_| WireError::Line)?;
    if total > max_message {
        return Err(WireError::LongMessage(total));
    }
    if headers > total {
        return Err(WireError::Line);
    }
    let Some(content) = bytes.get(start..start + total + 2) else { return Ok(None) };
    let (content, end) = content.split_at(total);
    if end != b"\r\n" {
        return Err(WireError::End);
    }
    let (headers, payload) = content.split_at(headers);
    let subject = subject.to_owned();
    let (status, payload) = (status(headers), payload.to_vec());
    let message = Message { subject, subscription, reply_to, status, payload };
    Ok(Some((Incoming::Message(message), start + total + 2)))
}

/// Returns the status in the first line of headers, if there is one.
fn status(headers: &[u8]) -> Option<u16> {
    let digits = headers.strip_prefix(STATUS_LINE)?.get(..3)?;
    str::from_utf8(digits).ok()?.parse().ok()
}

/// Sign-in of a client.
#[derive(Clone, PartialEq, Eq)]
pub enum SignIn {
    /// The server asks for none.
    None,
    Password {
        user: String,
        password: String,
    },
    Token(String),
    /// Public key in the form of NATS, with its signature of the nonce.
    Key {
        nkey: String,
        signature: String,
    },
}

impl fmt::Debug for SignIn {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            SignIn::None => "SignIn::None",
            SignIn::Password { .. } => "SignIn::Password",
            SignIn::Token(_) => "SignIn::Token",
            SignIn::Key { .. } => "SignIn::Key",
        })
    }
}

/// First message of a client.
#[derive(Serialize)]
struct Connect<'a> {
    verbose: bool,
    pedantic: bool,
    tls_required: bool,
    name: &'a str,
    lang: &'a str,
    version: &'a str,
    protocol: u8,
    echo: bool,
    headers: bool,
    no_responders: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    user: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pass: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    auth_token: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    nkey: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    sig: Option<&'a str>,
}

/// Returns the sign-in, with a ping behind it: the answer to the ping says that the server took it.
pub fn connect(name: &str, version: &str, is_tls: bool, sign_in: &SignIn) -> Vec<u8> {
    let mut connect = Connect {
        verbose: false,
        pedantic: false,
        tls_required: is_tls,
        name,
        lang: "rust",
        version,
        protocol: 1,
        echo: false,
        headers: true,
        no_responders: true,
        user: None,
        pass: None,
        auth_token: None,
        nkey: None,
        sig: None,
    };
    match sign_in {
        SignIn::None => {}
        SignIn::Password { user, password } => {
            connect.user = Some(user);
            connect.pass = Some(password);
        }
        SignIn::Token(token) => connect.auth_token = Some(token),
        SignIn::Key { nkey, signature } => {
            connect.nkey = Some(nkey);
            connect.sig = Some(signature);
        }
    }
    let text = serde_json::to_string(&connect).expect("a struct with string keys");
    format!("CONNECT {text}\r\nPING\r\n").into_bytes()
}

/// Returns a subscription. `subject` has no blanks.
pub fn subscribe(subject: &str, id: u64) -> Vec<u8> {
    format!("SUB {subject} {id}\r\n").into_bytes()
}

/// Returns a message. `subject` and `reply_to` have no blanks.
pub fn publish(subject: &str, reply_to: &str, payload: &[u8]) -> Vec<u8> {
    let mut bytes = format!("PUB {subject} {reply_to} {}\r\n", payload.len()).into_bytes();
    bytes.extend_from_slice(payload);
    bytes.extend_from_slice(b"\r\n");
    bytes
}

pub const PING: &[u8] = b"PING\r\n";
pub const PONG: &[u8] = b"PONG\r\n";

/// Reports whether a key may sign this nonce: no text with a colon, as every message between gateways has one.
pub fn is_nonce(text: &str) -> bool {
    let allowed = |byte: u8| byte.is_ascii_alphanumeric() || b"-_=+/".contains(&byte);
    (8..=128).contains(&text.len()) && text.bytes().all(allowed)
}

#[cfg(test)]
mod tests;
