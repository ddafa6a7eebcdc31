//! Parser of the process log, with human-readable texts: errors, pushed options, negotiated parameters. Pure.

/// Meaning of a log line.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum LogLine {
    /// The error of the process.
    Error(String),
    /// An unspecific error, used if there is no better one.
    Vague(String),
    /// The server refuses this client, and will refuse it again.
    Denied(String),
    /// A pushed option of the server that the client ignored.
    Ignored(String),
    Cipher(String),
    Mtu(u16),
    /// Seconds between pings. The server requests them and sends them itself.
    Ping(u16),
}

/// Longest text of the server that is kept, in characters.
const MAX_LINE_CHARS: usize = 200;

const ERRORS: &[(&str, &str)] = &[
    ("failed to negotiate cipher", "the server and the file agree on no cipher"),
    ("no shared cipher", "the server and the file agree on no cipher"),
    ("VERIFY X509NAME ERROR", "the server's certificate is of another name than the file asks for"),
    ("VERIFY KU ERROR", "the server's certificate is not that of a server"),
    ("VERIFY EKU ERROR", "the server's certificate is not that of a server"),
    ("tls-crypt unwrap", "the key for tls-crypt is not the server's"),
    ("incoming packet authentication failed", "the key for tls-auth or tls-crypt is not the server's"),
    ("TLS key negotiation failed to occur within", "the server does not answer"),
    ("private key password verification failed", "the passphrase of the key is wrong"),
    ("Cannot load inline certificate", "the certificate in the file cannot be read"),
    ("Cannot load CA certificate", "the certificate authority in the file cannot be read"),
    ("Cannot load private key", "the key in the file cannot be read, or its passphrase is wrong"),
    ("Cannot ioctl TUNSETIFF", "the network interface cannot be made"),
    ("Cannot open TUN/TAP dev", "/dev/net/tun cannot be opened"),
    ("setsockopt(IP", "an option of the socket was refused"),
    ("Connection refused", "the server refuses connections"),
    ("Network is unreachable", "the network of the server cannot be reached"),
    ("No route to host", "the server cannot be reached"),
    ("Connection reset", "the server cut the connection"),
    ("Inactivity timeout (--ping-restart)", "the server has fallen silent"),
    ("Server poll timeout", "the server does not answer"),
    (
        "Compression is not allowed",
        "the file asks for compression, which is not safe: add `allow-compression asym`",
    ),
];

pub(super) fn reported(line: &str) -> Option<LogLine> {
    if let Some(option) = within(line, "Pushed option removed by filter: '") {
        return Some(LogLine::Ignored(clean(option)));
    }
    if let Some(cipher) = within(line, "Data Channel: cipher '") {
        return Some(LogLine::Cipher(clean(cipher)));
    }
    if let Some(mtu) = line.strip_prefix("OPTIONS IMPORT: tun-mtu set to ") {
        return mtu.trim().parse().ok().map(LogLine::Mtu);
    }
    if let Some((_, options)) = line.split_once("PUSH: Received control message: 'PUSH_REPLY,") {
        let ping = options.split([',', '\'']).find_map(|option| option.strip_prefix("ping "));
        return ping.and_then(|seconds| seconds.trim().parse().ok()).map(LogLine::Ping);
    }
    if let Some((_, words)) = line.split_once("AUTH: Received control message: AUTH_FAILED") {
        if words.contains("cipher") {
            return Some(LogLine::Denied("the server and the file agree on no cipher (AUTH_FAILED)".into()));
        }
        let words = clean(words.trim_start_matches([',', ' ']));
        let quoted = if words.is_empty() { String::new() } else { format!(": {words:?}") };
        return Some(LogLine::Denied(format!(
            "the server refuses the user name, the password or the key (AUTH_FAILED){quoted}"
        )));
    }
    if let Some((_, words)) = line.split_once("VERIFY ERROR: ") {
        let reason = words.split("error=").nth(1).and_then(|rest| rest.split([':', ',']).next());
        let reason = clean(reason.unwrap_or("unknown"));
        return Some(LogLine::Error(format!("the server's certificate is not accepted: {reason}")));
    }
    if let Some((_, words)) = line.split_once("Options error: ") {
        return Some(LogLine::Error(format!("OpenVPN refuses the configuration: {}", clean(words))));
    }
    let known = ERRORS.iter().find(|(sign, _)| line.contains(sign));
    if let Some((_, words)) = known {
        return Some(LogLine::Error((*words).to_owned()));
    }
    let tls =
        line.split_once("OpenSSL: error:").map(|(_, words)| words.rsplit(':').find(|part| !part.is_empty()));
    tls.flatten().map(|words| LogLine::Vague(format!("TLS: {}", clean(words))))
}

/// Returns the reason for a lost connection or an exit, from the keyword of the process.
pub(super) fn reason(word: &str) -> Option<&'static str> {
    Some(match word {
        "ping-restart" | "ping-exit" => "the server has fallen silent",
        "server_poll" | "connect-timeout" => "the server does not answer",
        "tls-error" | "tls-exit" => "TLS failed",
        "connection-reset" => "the server cut the connection",
        "connection-failed" => "the server cannot be reached",
        "auth-failure" => "the server refuses the user name, the password or the key (AUTH_FAILED)",
        "server-pushed-connection-reset" | "server-pushed-halt" | "remote-exit" => "the server has ended",
        "private-key-password-failure" => "the passphrase of the key is wrong",
        "init_instance" => "the connection could not be set up",
        "process-push-msg-failed" => "the server pushed options that cannot be obeyed",
        _ => return None,
    })
}

/// Returns the text between `before` and the next quote.
fn within<'a>(line: &'a str, before: &str) -> Option<&'a str> {
    line.split_once(before)?.1.split('\'').next()
}

/// Returns foreign text, shortened and limited to printable characters.
pub(super) fn clean(text: &str) -> String {
    let printable = text.trim().chars().map(|c| if c.is_control() { ' ' } else { c });
    printable.take(MAX_LINE_CHARS).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn error(line: &str) -> String {
        match reported(line) {
            Some(LogLine::Error(words) | LogLine::Vague(words) | LogLine::Denied(words)) => words,
            other => panic!("{line}: {other:?}"),
        }
    }

    #[test]
    fn usual_failures_have_words() {
        let cases = [
            ("AUTH: Received control message: AUTH_FAILED", "AUTH_FAILED"),
            ("AUTH: Received control message: AUTH_FAILED,account expired", "\"account expired\""),
            (
                "AUTH: Received control message: AUTH_FAILED,Data channel cipher negotiation failed (no shared cipher)",
                "cipher",
            ),
            ("OPTIONS ERROR: failed to negotiate cipher with server.  Add the", "cipher"),
            (
                "VERIFY ERROR: depth=1, error=self-signed certificate in certificate chain: CN=x, serial=1",
                "self-signed",
            ),
            ("VERIFY ERROR: depth=0, error=certificate has expired: CN=server", "certificate has expired"),
            ("VERIFY X509NAME ERROR: CN=a, must be b", "another name"),
            (
                "TLS Error: TLS key negotiation failed to occur within 60 seconds (check your network",
                "does not answer",
            ),
            ("Options error: Unrecognized option or missing or extra parameter(s) in stdin:3: x", "stdin:3"),
            ("ERROR: Cannot ioctl TUNSETIFF ov-x: Device or resource busy (errno=16)", "interface"),
            ("OpenSSL: error:0A000102:SSL routines::unsupported protocol:", "unsupported protocol"),
            ("read UDPv4 [ECONNREFUSED]: Connection refused (fd=4,code=111)", "refuses connections"),
        ];
        for (line, part) in cases {
            assert!(error(line).contains(part), "{line}: {}", error(line));
        }
        assert!(matches!(reported("AUTH: Received control message: AUTH_FAILED"), Some(LogLine::Denied(_))));
        assert_eq!(reported("Initialization Sequence Completed"), None);
    }

    #[test]
    fn pushed_and_negotiated_options_are_parsed() {
        let line = "Pushed option removed by filter: 'redirect-gateway def1'";
        assert_eq!(reported(line), Some(LogLine::Ignored("redirect-gateway def1".into())));
        let line = "Data Channel: cipher 'AES-256-GCM', peer-id: 0";
        assert_eq!(reported(line), Some(LogLine::Cipher("AES-256-GCM".into())));
        assert_eq!(reported("OPTIONS IMPORT: tun-mtu set to 1400"), Some(LogLine::Mtu(1400)));
        assert_eq!(reported("OPTIONS IMPORT: tun-mtu set to x"), None);
        let push =
            "PUSH: Received control message: 'PUSH_REPLY,topology subnet,ping 10,ping-restart 60,peer-id 0'";
        assert_eq!(reported(push), Some(LogLine::Ping(10)));
        assert_eq!(reported(&push.replace(",ping 10", "")), None, "ping-restart is another option");
    }

    #[test]
    fn foreign_texts_are_short_and_printable() {
        let line = format!("AUTH: Received control message: AUTH_FAILED,\u{1b}[31m{}", "x".repeat(5000));
        let words = error(&line);
        assert!(words.len() < 400 && !words.contains('\u{1b}'), "{words}");
    }
}
