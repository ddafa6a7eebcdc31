//! `.ovpn` text to a value. All that is wrong is reported at once, by line and directive, never by argument.

use super::directive::{Argument, Rule, find};
use super::line::HIDDEN;
use super::token::{MAX_LINE, TokenError, tokens};
use super::{Block, Credentials, Directive, Dropped, Ovpn, OvpnError, Remote, Tag, Transport};
use crate::secret::Secret;
use crate::validated::{Host, is_host_name, parse_port};

/// Maximum length of a text in bytes.
pub const MAX_SIZE: usize = 256 * 1024;

/// OpenVPN takes no more.
const MAX_REMOTES: usize = 64;
/// Maximum number of reported errors.
const MAX_ERRORS: usize = 50;
/// Longer first words of a line are not echoed: they may be part of a key.
const MAX_NAME: usize = 32;
const DEFAULT_PORT: u16 = 1194;

/// Parses the text of a file.
pub fn parse(text: &str) -> Result<Ovpn, Vec<OvpnError>> {
    if text.len() > MAX_SIZE {
        let problem = format!("The text is longer than {MAX_SIZE} bytes");
        return Err(vec![OvpnError { line: 0, name: String::new(), problem }]);
    }
    let mut parser = Parser::default();
    let mut lines =
        text.trim_start_matches('\u{feff}').lines().enumerate().map(|(index, line)| (index + 1, line));
    while let Some((number, line)) = lines.next() {
        parser.line = number;
        match opening(line) {
            Some("connection") => parser.open_connection(),
            Some(tag) => {
                let tag = tag.to_owned();
                let closing = format!("</{tag}>");
                let mut content = zeroize::Zeroizing::new(String::new());
                let mut closed = false;
                for (_, line) in lines.by_ref() {
                    if line.trim_start().starts_with(&closing) {
                        closed = true;
                        break;
                    }
                    content.push_str(line.trim_end());
                    content.push('\n');
                }
                parser.block(&tag, &content, closed);
            }
            None if line.trim() == "</connection>" => parser.close_connection(),
            None => parser.directive(line),
        }
        if parser.errors.len() >= MAX_ERRORS {
            break;
        }
    }
    parser.finish()
}

/// The tag of a line that opens a block.
fn opening(line: &str) -> Option<&str> {
    let tag = line.trim().strip_prefix('<')?.strip_suffix('>')?;
    is_name(tag).then_some(tag)
}

fn is_name(word: &str) -> bool {
    (1..=MAX_NAME).contains(&word.len())
        && word.bytes().all(|b| b.is_ascii_lowercase() || b.is_ascii_digit() || b == b'-')
        && word.starts_with(|c: char| c.is_ascii_lowercase())
}

#[derive(Default)]
struct Parser {
    line: usize,
    file: Ovpn,
    errors: Vec<OvpnError>,
    remotes: Vec<Unfinished>,
    port: Option<u16>,
    transport: Option<Transport>,
    is_tap: bool,
    connection: Option<Connection>,
    /// Files in the place of blocks, with their lines. A block that follows takes their place.
    files: Vec<(usize, &'static str)>,
}

/// The `<connection>` block that is being read.
#[derive(Default)]
struct Connection {
    port: Option<u16>,
    transport: Option<Transport>,
    options: Vec<Directive>,
    /// Index of the first of its remotes.
    first: usize,
}

/// Directives that OpenVPN takes in a `<connection>` block, for the servers of that block.
const CONNECTION_OPTIONS: [&str; 8] = [
    "connect-timeout",
    "explicit-exit-notify",
    "float",
    "fragment",
    "key-direction",
    "mssfix",
    "mtu-disc",
    "tun-mtu",
];

/// Server whose port and transport may be given elsewhere in the file.
struct Unfinished {
    host: Host,
    port: Option<u16>,
    transport: Option<Transport>,
    options: Vec<Directive>,
}

/// Returns the reason for which a line has no words.
fn unreadable(error: TokenError) -> String {
    match error {
        TokenError::Open => "A quote is not closed, or a backslash stands alone".to_owned(),
        TokenError::Long => format!("The line is longer than {MAX_LINE} bytes"),
        TokenError::Control => "The line holds control characters".to_owned(),
    }
}

impl Parser {
    fn fail(&mut self, name: &str, problem: impl Into<String>) {
        self.errors.push(OvpnError { line: self.line, name: name.to_owned(), problem: problem.into() });
    }

    fn drop(&mut self, name: &str, why: &'static str) {
        self.file.dropped.push(Dropped { line: self.line, name: name.to_owned(), why });
    }

    fn directive(&mut self, line: &str) {
        let words = match tokens(line) {
            Ok(words) => words,
            Err(error) => return self.fail("", unreadable(error)),
        };
        // `setenv opt` marks a directive that older versions may not know.
        let words = match words.as_slice() {
            [setenv, opt, rest @ ..] if setenv == "setenv" && opt == "opt" => rest,
            words => words,
        };
        let Some((first, arguments)) = words.split_first() else { return };
        let given = first.strip_prefix("--").unwrap_or(first);
        if !is_name(given) {
            return self.fail("", "This is neither a directive, a comment nor a block");
        }
        let (name, rule) = find(given);
        match rule {
            Rule::Keep(kinds, least) => self.keep(name, arguments, kinds, least),
            Rule::Renamed(name, kinds) => self.keep(name, arguments, kinds, kinds.len()),
            Rule::Own => {}
            Rule::Drop(why) => self.drop(given, why),
            Rule::Refuse(why) => self.fail(given, sentence(why)),
            Rule::Remote => self.remote(arguments),
            Rule::Transport => match arguments {
                [word] => match transport(word) {
                    Some(transport) => *self.place_of_transport() = Some(transport),
                    None => self.fail(name, "Expected udp or tcp, with 4 or 6 for one family"),
                },
                _ => self.fail(name, "Expected one argument"),
            },
            Rule::Port => match arguments {
                [word] if parse_port(word).is_some() => *self.place_of_port() = parse_port(word),
                _ => self.fail(name, "Expected a number from 1 to 65535"),
            },
            Rule::Device | Rule::DeviceType => self.device(name, arguments),
            Rule::PullFilter => self.pull_filter(arguments),
            Rule::AuthUserPass => match arguments {
                [] => self.file.asks_credentials = true,
                [inline] if inline == "[inline]" => self.file.asks_credentials = true,
                _ => self.fail(
                    name,
                    "Files cannot be followed; write auth-user-pass alone and give username and password of the tunnel",
                ),
            },
            Rule::File => self.external(name, arguments),
            Rule::DirectedFile => match arguments {
                [inline, direction] if inline == "[inline]" => {
                    self.keep("key-direction", std::slice::from_ref(direction), &[Argument::Number(0, 1)], 1);
                }
                [_, direction] => {
                    self.keep("key-direction", std::slice::from_ref(direction), &[Argument::Number(0, 1)], 1);
                    self.external(name, arguments);
                }
                _ => self.external(name, arguments),
            },
        }
    }

    fn keep(&mut self, name: &'static str, arguments: &[String], kinds: &[Argument], least: usize) {
        if arguments.len() < least || arguments.len() > kinds.len() {
            let wanted = match (least, kinds.len()) {
                (least, most) if least == most => format!("{most}"),
                (least, most) => format!("{least} to {most}"),
            };
            return self.fail(name, format!("Expected {wanted} arguments, not {}", arguments.len()));
        }
        for (kind, word) in kinds.iter().zip(arguments) {
            if !kind.admits(word) {
                return self.fail(name, format!("Expected {}", kind.wanted()));
            }
        }
        let directive = Directive { name, arguments: arguments.to_vec() };
        // Written again with quotes, it may have grown.
        if super::line::line(&directive).len() > MAX_LINE {
            return self.fail(name, format!("The line is longer than {MAX_LINE} bytes"));
        }
        match &mut self.connection {
            None => self.file.directives.push(directive),
            Some(connection) if CONNECTION_OPTIONS.contains(&name) => connection.options.push(directive),
            Some(_) => self.fail(name, "This does not belong in a <connection> block"),
        }
    }

    fn external(&mut self, name: &'static str, arguments: &[String]) {
        match (name, arguments) {
            // The passphrase is a field of the tunnel.
            ("askpass", []) => {}
            (_, [inline, ..]) if inline == "[inline]" => {}
            ("askpass", _) => self.fail(name, "Files cannot be followed; give key_passphrase of the tunnel"),
            // The last one counts, as in OpenVPN.
            _ => self.files.push((self.line, name)),
        }
    }

    fn pull_filter(&mut self, arguments: &[String]) {
        match arguments {
            // The gateway decides which options are accepted.
            [action, _] if action == "accept" => {}
            _ => self.keep(
                "pull-filter",
                arguments,
                &[Argument::Word(&["ignore", "reject"]), Argument::Text],
                2,
            ),
        }
    }

    fn device(&mut self, name: &'static str, arguments: &[String]) {
        match arguments {
            [device] if device.starts_with("tap") => self.is_tap = true,
            [device] if device.starts_with("tun") || name == "dev" && device != "null" => {}
            _ => self.fail(name, "Expected tun"),
        }
        if self.is_tap {
            self.is_tap = false;
            self.fail(
                name,
                "Tunnels of Ethernet frames (tap) are not supported, only those of packets (tun)",
            );
        }
    }

    fn remote(&mut self, arguments: &[String]) {
        let (host, rest) = match arguments {
            [host, rest @ ..] if rest.len() <= 2 => (host, rest),
            _ => return self.fail("remote", "Expected a host, a port and a protocol"),
        };
        let host = match host.parse() {
            Ok(address) => Host::Address(address),
            Err(_) if is_host_name(host) => Host::Name(host.trim_end_matches('.').to_ascii_lowercase()),
            Err(_) => return self.fail("remote", "The host is neither an address nor a name"),
        };
        let port = match rest.first() {
            None => None,
            Some(word) => match parse_port(word) {
                Some(port) => Some(port),
                None => return self.fail("remote", "The port must be a number from 1 to 65535"),
            },
        };
        let transport = match rest.get(1) {
            None => None,
            Some(word) => match transport(word) {
                Some(transport) => Some(transport),
                None => {
                    return self
                        .fail("remote", "The protocol must be udp or tcp, with 4 or 6 for one family");
                }
            },
        };
        if self.remotes.len() == MAX_REMOTES {
            return self.fail("remote", format!("At most {MAX_REMOTES} servers"));
        }
        self.remotes.push(Unfinished { host, port, transport, options: Vec::new() });
    }

    fn place_of_port(&mut self) -> &mut Option<u16> {
        match &mut self.connection {
            Some(connection) => &mut connection.port,
            None => &mut self.port,
        }
    }

    fn place_of_transport(&mut self) -> &mut Option<Transport> {
        match &mut self.connection {
            Some(connection) => &mut connection.transport,
            None => &mut self.transport,
        }
    }

    fn open_connection(&mut self) {
        if self.connection.is_some() {
            self.fail("connection", "One connection stands inside another");
        }
        self.connection = Some(Connection { first: self.remotes.len(), ..Connection::default() });
    }

    fn close_connection(&mut self) {
        let Some(connection) = self.connection.take() else {
            return self.fail("connection", "Closed and never opened");
        };
        for remote in self.remotes.iter_mut().skip(connection.first) {
            remote.port = remote.port.or(connection.port);
            remote.transport = remote.transport.or(connection.transport);
            remote.options.clone_from(&connection.options);
        }
    }

    fn block(&mut self, tag: &str, content: &str, closed: bool) {
        if !closed {
            return self.fail(tag, format!("</{tag}> is missing"));
        }
        if content.chars().any(|c| c.is_control() && !matches!(c, '\n' | '\t')) {
            return self.fail(tag, "The block holds control characters");
        }
        if tag == "auth-user-pass" {
            return self.credentials(content);
        }
        let Ok(tag) = tag.parse::<Tag>() else {
            return match find(tag).1 {
                Rule::Refuse(why) => self.fail(tag, sentence(why)),
                Rule::Own => {}
                _ => self.drop(tag, "this version of the gateway does not know such a block"),
            };
        };
        if self.connection.is_some() {
            return self.fail(tag.as_str(), "A key for one connection only is not supported");
        }
        // The last one counts, as in OpenVPN.
        self.file.blocks.retain(|block| block.tag != tag);
        self.files.retain(|(_, name)| *name != tag.as_str());
        match content.trim() {
            "" => return self.fail(tag.as_str(), "The block is empty"),
            HIDDEN => {
                return self
                    .fail(tag.as_str(), "The key was hidden when the file was shown; give it in clear");
            }
            _ => {}
        }
        let text = Secret::new(format!("{}\n", content.trim_end()));
        self.file.blocks.push(Block { tag, text });
    }

    fn credentials(&mut self, content: &str) {
        let mut lines = content.lines().map(str::trim).filter(|line| !line.is_empty());
        let username = lines.next();
        let password = lines.next();
        let too_long = |text: Option<&str>| text.is_some_and(|text| text.len() > 255);
        self.file.asks_credentials = true;
        match (username, lines.next()) {
            (Some(HIDDEN), _) => {
                self.fail("auth-user-pass", "The credentials were hidden; give them in clear")
            }
            (Some(username), None) if !too_long(Some(username)) && !too_long(password) => {
                let password = Secret::new(password.unwrap_or_default());
                self.file.credentials = Some(Credentials { username: Secret::new(username), password });
            }
            _ => self.fail("auth-user-pass", "Expected a line with the user name and one with the password"),
        }
    }

    fn finish(mut self) -> Result<Ovpn, Vec<OvpnError>> {
        for (line, name) in std::mem::take(&mut self.files) {
            self.line = line;
            let why = if self.file.blocks.iter().any(|block| block.tag.as_str() == name) {
                format!(
                    "Files cannot be followed, and this one comes after <{name}>, so it would count; remove the line"
                )
            } else {
                format!(
                    "Files cannot be followed; put the content of the file between <{name}> and </{name}>"
                )
            };
            self.fail(name, why);
        }
        if self.connection.is_some() {
            self.fail("connection", "</connection> is missing");
        }
        let (port, transport) = (self.port.unwrap_or(DEFAULT_PORT), self.transport.unwrap_or_default());
        let finished = self.remotes.drain(..).map(|remote| Remote {
            host: remote.host,
            port: remote.port.unwrap_or(port),
            transport: remote.transport.unwrap_or(transport),
            options: remote.options,
        });
        self.file.remotes = finished.collect();
        // What is missing is of interest where nothing was misread.
        if self.errors.is_empty() {
            self.line = 0;
            self.miss();
        }
        if self.errors.is_empty() { Ok(self.file) } else { Err(self.errors) }
    }

    /// Adds directives without which OpenVPN refuses to start.
    fn miss(&mut self) {
        let file = &self.file;
        let has = |tag| file.block(tag).is_some();
        let mut missing = Vec::new();
        if !file.has("client") && !file.has("tls-client") {
            missing.push("Neither client nor tls-client stands in the file: it is not that of a client");
        }
        if file.remotes.is_empty() {
            missing.push("The file names no server (remote)");
        }
        if !has(Tag::Ca) && !has(Tag::Pkcs12) && !has(Tag::PeerFingerprint) && !file.has("peer-fingerprint") {
            missing.push("There is nothing to know the server by: <ca>, <pkcs12> or <peer-fingerprint>");
        }
        if has(Tag::Cert) != has(Tag::Key) {
            missing.push("<cert> and <key> belong together");
        }
        if !has(Tag::Cert) && !has(Tag::Pkcs12) && !file.asks_credentials {
            missing.push(
                "There is nothing for the server to know the client by: <cert> and <key>, or auth-user-pass",
            );
        }
        missing.into_iter().for_each(|problem| self.fail("", problem));
    }
}

fn transport(word: &str) -> Option<Transport> {
    Some(match word {
        "udp" => Transport::Udp,
        "udp4" => Transport::Udp4,
        "udp6" => Transport::Udp6,
        "tcp" | "tcp-client" => Transport::Tcp,
        "tcp4" | "tcp4-client" => Transport::Tcp4,
        "tcp6" | "tcp6-client" => Transport::Tcp6,
        _ => return None,
    })
}

/// Capitalises the first letter.
fn sentence(text: &str) -> String {
    let mut characters = text.chars();
    characters.next().map_or_else(String::new, |first| first.to_uppercase().chain(characters).collect())
}
