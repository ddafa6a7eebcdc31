//! Directives that are kept with their arguments, and the treatment of all others.

use std::net::IpAddr;

use ipnet::IpNet;

/// Treatment of a directive.
#[derive(Clone, Copy, Debug)]
pub(super) enum Rule {
    /// Kept: the arguments in order, and how many of them there must be.
    Keep(&'static [Argument], usize),
    /// Kept under another name.
    Renamed(&'static str, &'static [Argument]),
    /// The gateway sees to it itself, or it means nothing here: left out without a word.
    Own,
    /// Left out, with a reported reason.
    Drop(&'static str),
    /// The file cannot be used.
    Refuse(&'static str),
    Remote,
    Transport,
    Port,
    Device,
    DeviceType,
    PullFilter,
    AuthUserPass,
    /// A file: only `[inline]` will do.
    File,
    /// File with a key direction.
    DirectedFile,
}

#[derive(Clone, Copy, Debug)]
pub(super) enum Argument {
    Number(u32, u32),
    Word(&'static [&'static str]),
    /// Names of ciphers and the like, with colons between.
    List,
    /// Text, as in a certificate.
    Text,
    Address,
    Network,
    Hex,
    Version,
}

impl Argument {
    pub(super) fn admits(self, word: &str) -> bool {
        let all = |extra: &[u8]| {
            (1..=200).contains(&word.len())
                && word.bytes().all(|b| b.is_ascii_alphanumeric() || extra.contains(&b))
        };
        match self {
            Argument::Number(least, most) => {
                word.bytes().all(|b| b.is_ascii_digit())
                    && word.parse().is_ok_and(|number: u32| (least..=most).contains(&number))
            }
            Argument::Word(words) => words.contains(&word),
            Argument::List => all(b"-_:+.?!@="),
            Argument::Text => (1..=200).contains(&word.len()) && !word.chars().any(char::is_control),
            Argument::Address => word.parse::<IpAddr>().is_ok(),
            Argument::Network => word.parse::<IpNet>().is_ok() || word.parse::<IpAddr>().is_ok(),
            Argument::Hex => {
                (1..=200).contains(&word.len()) && word.bytes().all(|b| b.is_ascii_hexdigit() || b == b':')
            }
            Argument::Version => {
                word.len() <= 12 && word.bytes().all(|b| b.is_ascii_digit() || b == b'.') && !word.is_empty()
            }
        }
    }

    /// Returns the human-readable description of valid values.
    pub(super) fn wanted(self) -> String {
        match self {
            Argument::Number(least, most) => format!("a number from {least} to {most}"),
            Argument::Word(words) => words.join(" or "),
            Argument::List => "names with colons between them".to_owned(),
            Argument::Text => "printable characters".to_owned(),
            Argument::Address => "an address".to_owned(),
            Argument::Network => "an address with prefix length".to_owned(),
            Argument::Hex => "hexadecimal digits".to_owned(),
            Argument::Version => "a version".to_owned(),
        }
    }
}

const COMMAND: &str = "commands and plugins are never run";
const ROUTES: &str = "policies decide what is sent through the tunnel";
const NAMES: &str = "name servers are those of the tunnel's own settings";
const PROCESS: &str = "the gateway runs OpenVPN in its own way";
const MANAGEMENT: &str = "the gateway manages OpenVPN itself";
const ENVIRONMENT: &str = "nothing reads the environment of OpenVPN here";
const UNKNOWN: &str = "this version of the gateway does not know it";
const PRIVACY: &str = "it would tell the server about this host";
const ENDING: &str = "when the tunnel ends is the gateway's to say";
const SERVER: &str = "this is not the file of a client";
const PROXY: &str = "a way to the server through a proxy is not supported";
const TOKEN: &str = "keys on tokens and in key stores are not supported; the key must stand in the file";
const STATIC: &str = "static keys are not supported; the file must use certificates";
const CHALLENGE: &str = "one-time codes are not supported";
const VERIFY: &str =
    "commands are never run, and without this one the server would be verified less strictly";
const FOLLOW: &str = "other files cannot be followed";

use Argument::{Address, Hex, List, Network, Number, Text, Version, Word};
use Rule::{Drop, Keep, Own, Refuse, Renamed};

const FLAG: Rule = Keep(&[], 0);
const ANY: Argument = Number(0, u32::MAX);
const SECONDS: Argument = Number(0, 86_400);

/// Canonical name of the directive, and its treatment.
#[rustfmt::skip]
pub(super) const RULES: &[(&str, Rule)] = &[
    ("allow-compression", Keep(&[Word(&["no", "asym"])], 1)),
    ("auth", Keep(&[List], 1)),
    ("auth-nocache", FLAG),
    ("cipher", Keep(&[List], 1)),
    ("client", FLAG),
    ("comp-lzo", Keep(&[Word(&["no", "yes", "adaptive"])], 0)),
    ("compat-mode", Keep(&[Version], 1)),
    ("compress", Keep(&[Word(&["stub", "stub-v2", "lz4", "lz4-v2", "lzo", "migrate"])], 0)),
    ("connect-timeout", Keep(&[Number(1, 3600)], 1)),
    ("data-ciphers", Keep(&[List], 1)),
    ("data-ciphers-fallback", Keep(&[List], 1)),
    ("disable-occ", FLAG),
    ("explicit-exit-notify", Keep(&[Number(0, 10)], 0)),
    ("float", FLAG),
    ("fragment", Keep(&[Number(0, 65_535), Word(&["mtu"])], 1)),
    ("hand-window", Keep(&[Number(1, 3600)], 1)),
    ("ifconfig", Keep(&[Address, Address], 2)),
    ("ifconfig-ipv6", Keep(&[Network, Address], 2)),
    ("keepalive", Keep(&[Number(1, 3600), Number(2, 86_400)], 2)),
    ("key-direction", Keep(&[Number(0, 1)], 1)),
    ("mssfix", Keep(&[Number(0, 65_535), Word(&["mtu", "fixed"])], 0)),
    ("mtu-disc", Keep(&[Word(&["no", "maybe", "yes"])], 1)),
    ("mute-replay-warnings", FLAG),
    ("ncp-ciphers", Renamed("data-ciphers", &[List])),
    ("ns-cert-type", Keep(&[Word(&["server"])], 1)),
    ("ping", Keep(&[SECONDS], 1)),
    ("ping-restart", Keep(&[SECONDS], 1)),
    ("pull", FLAG),
    ("rcvbuf", Keep(&[ANY], 1)),
    ("remote-cert-eku", Keep(&[Text], 1)),
    ("remote-cert-ku", Keep(&[Hex, Hex, Hex, Hex, Hex, Hex], 0)),
    ("remote-cert-tls", Keep(&[Word(&["server"])], 1)),
    ("remote-random", FLAG),
    ("remote-random-hostname", FLAG),
    ("reneg-bytes", Keep(&[ANY], 1)),
    ("reneg-pkts", Keep(&[ANY], 1)),
    ("reneg-sec", Keep(&[ANY, ANY], 1)),
    ("replay-window", Keep(&[Number(0, 65_536), SECONDS], 1)),
    ("server-poll-timeout", Renamed("connect-timeout", &[Number(1, 3600)])),
    ("sndbuf", Keep(&[ANY], 1)),
    ("tls-cert-profile", Keep(&[Word(&["legacy", "preferred", "suiteb", "insecure"])], 1)),
    ("tls-cipher", Keep(&[List], 1)),
    ("tls-ciphersuites", Keep(&[List], 1)),
    ("tls-client", FLAG),
    ("tls-groups", Keep(&[List], 1)),
    ("tls-timeout", Keep(&[Number(1, 3600)], 1)),
    ("tls-version-max", Keep(&[Word(&["1.0", "1.1", "1.2", "1.3"])], 1)),
    ("tls-version-min", Keep(&[Word(&["1.0", "1.1", "1.2", "1.3"]), Word(&["or-highest"])], 1)),
    ("topology", Keep(&[Word(&["net30", "p2p", "subnet"])], 1)),
    ("tran-window", Keep(&[SECONDS], 1)),
    ("tun-mtu", Keep(&[Number(576, 9000), Number(576, 9000)], 1)),
    ("verify-hash", Keep(&[Hex, Word(&["SHA1", "SHA256", "sha1", "sha256"])], 1)),
    ("verify-x509-name", Keep(&[Text, Word(&["subject", "name", "name-prefix"])], 1)),

    ("remote", Rule::Remote),
    ("proto", Rule::Transport),
    ("port", Rule::Port),
    ("rport", Rule::Port),
    ("dev", Rule::Device),
    ("dev-type", Rule::DeviceType),
    ("pull-filter", Rule::PullFilter),
    ("auth-user-pass", Rule::AuthUserPass),
    ("ca", Rule::File),
    ("cert", Rule::File),
    ("crl-verify", Rule::File),
    ("extra-certs", Rule::File),
    ("key", Rule::File),
    ("peer-fingerprint", Keep(&[Hex], 1)),
    ("pkcs12", Rule::File),
    ("tls-auth", Rule::DirectedFile),
    ("tls-crypt", Rule::File),
    ("tls-crypt-v2", Rule::File),
    ("askpass", Rule::File),

    ("allow-recursive-routing", Own), ("auth-retry", Own), ("bind", Own), ("block-outside-dns", Own),
    ("connect-retry", Own), ("connect-retry-max", Own), ("dev-node", Own), ("dh", Own), ("dhcp-release", Own),
    ("dhcp-renew", Own), ("disable-dco", Own), ("fast-io", Own), ("ignore-unknown-option", Own),
    ("ip-win32", Own), ("lport", Own), ("machine-readable-output", Own), ("mlock", Own), ("mtu-test", Own),
    ("multihome", Own), ("mute", Own), ("nice", Own), ("nobind", Own), ("pause-exit", Own),
    ("persist-key", Own), ("persist-local-ip", Own), ("persist-remote-ip", Own), ("persist-tun", Own),
    ("ping-timer-rem", Own), ("register-dns", Own), ("remap-usr1", Own),
    ("resolv-retry", Own), ("route-delay", Own), ("route-method", Own), ("service", Own),
    ("show-net-up", Own), ("suppress-timestamps", Own), ("tap-sleep", Own), ("tun-ipv6", Own),
    ("txqueuelen", Own), ("verb", Own), ("win-sys", Own), ("windows-driver", Own),

    ("auth-user-pass-verify", Drop(COMMAND)), ("client-connect", Drop(COMMAND)),
    ("client-disconnect", Drop(COMMAND)), ("dns-updown", Drop(COMMAND)), ("down", Drop(COMMAND)),
    ("down-pre", Drop(COMMAND)), ("engine", Drop(COMMAND)), ("ipchange", Drop(COMMAND)),
    ("iproute", Drop(COMMAND)), ("learn-address", Drop(COMMAND)), ("plugin", Drop(COMMAND)),
    ("providers", Drop(COMMAND)), ("route-pre-down", Drop(COMMAND)), ("route-up", Drop(COMMAND)),
    ("script-security", Drop(COMMAND)), ("tls-export-cert", Drop(COMMAND)), ("up", Drop(COMMAND)),
    ("up-delay", Drop(COMMAND)), ("up-restart", Drop(COMMAND)),
    ("tls-verify", Refuse(VERIFY)), ("tls-crypt-v2-verify", Refuse(VERIFY)),

    ("block-ipv6", Drop(ROUTES)), ("client-nat", Drop(ROUTES)), ("max-routes", Drop(ROUTES)),
    ("redirect-gateway", Drop(ROUTES)), ("redirect-private", Drop(ROUTES)), ("route", Drop(ROUTES)),
    ("route-gateway", Drop(ROUTES)), ("route-ipv6", Drop(ROUTES)), ("route-ipv6-gateway", Drop(ROUTES)),
    ("route-metric", Drop(ROUTES)), ("route-noexec", Drop(ROUTES)), ("route-nopull", Drop(ROUTES)),
    ("ifconfig-noexec", Drop(ROUTES)), ("local", Drop(ROUTES)), ("mark", Drop(ROUTES)),
    ("bind-dev", Drop(ROUTES)),
    ("dhcp-option", Drop(NAMES)), ("dns", Drop(NAMES)),

    ("cd", Drop(PROCESS)), ("chroot", Drop(PROCESS)), ("daemon", Drop(PROCESS)), ("echo", Drop(PROCESS)),
    ("errors-to-stderr", Drop(PROCESS)), ("group", Drop(PROCESS)), ("inetd", Drop(PROCESS)),
    ("log", Drop(PROCESS)), ("log-append", Drop(PROCESS)), ("mktun", Drop(PROCESS)), ("rmtun", Drop(PROCESS)),
    ("setcon", Drop(PROCESS)), ("status", Drop(PROCESS)), ("status-version", Drop(PROCESS)),
    ("syslog", Drop(PROCESS)), ("tmp-dir", Drop(PROCESS)), ("user", Drop(PROCESS)), ("writepid", Drop(PROCESS)),
    ("setenv", Drop(ENVIRONMENT)), ("setenv-safe", Drop(ENVIRONMENT)),
    ("push-peer-info", Drop(PRIVACY)),
    ("auth-token", Drop(ENDING)), ("inactive", Drop(ENDING)), ("ping-exit", Drop(ENDING)),
    ("session-timeout", Drop(ENDING)), ("tls-exit", Drop(ENDING)),

    ("management", Drop(MANAGEMENT)), ("management-client", Drop(MANAGEMENT)),
    ("management-client-group", Drop(MANAGEMENT)), ("management-client-user", Drop(MANAGEMENT)),
    ("management-forget-disconnect", Drop(MANAGEMENT)), ("management-hold", Drop(MANAGEMENT)),
    ("management-log-cache", Drop(MANAGEMENT)), ("management-query-passwords", Drop(MANAGEMENT)),
    ("management-query-proxy", Drop(MANAGEMENT)), ("management-query-remote", Drop(MANAGEMENT)),
    ("management-signal", Drop(MANAGEMENT)), ("management-up-down", Drop(MANAGEMENT)),
    ("management-external-cert", Refuse(TOKEN)), ("management-external-key", Refuse(TOKEN)),

    ("capath", Refuse(FOLLOW)), ("config", Refuse(FOLLOW)),
    ("cryptoapicert", Refuse(TOKEN)), ("pkcs11-id", Refuse(TOKEN)), ("pkcs11-id-management", Refuse(TOKEN)),
    ("pkcs11-providers", Refuse(TOKEN)),
    ("http-proxy", Refuse(PROXY)), ("http-proxy-option", Refuse(PROXY)),
    ("http-proxy-user-pass", Refuse(PROXY)), ("socks-proxy", Refuse(PROXY)),
    ("secret", Refuse(STATIC)),
    ("static-challenge", Refuse(CHALLENGE)),
    ("duplicate-cn", Refuse(SERVER)), ("mode", Refuse(SERVER)), ("push", Refuse(SERVER)),
    ("server", Refuse(SERVER)), ("server-bridge", Refuse(SERVER)), ("server-ipv6", Refuse(SERVER)),
    ("tls-server", Refuse(SERVER)),
];

/// The directive by the name in a file.
pub(super) fn find(name: &str) -> (&'static str, Rule) {
    let found = RULES.iter().find(|(known, _)| *known == name);
    found.copied().unwrap_or(("", Drop(UNKNOWN)))
}
