//! Names that must not be forwarded: special-use names and the reverse zones of private and reserved addresses.

/// RFC 6761 (`test`, `localhost`, `invalid`), RFC 6762 (`local`), RFC 7686 (`onion`), RFC 8375 (`home.arpa`), RFC 9476
/// (`alt`), and `internal`, which ICANN reserves for private use.
pub(in crate::dns) const NAMES: &[&str] =
    &["localhost", "test", "invalid", "local", "onion", "home.arpa", "alt", "internal"];

/// RFC 6303, section 4, without the ranges. The zones of RFC 7534 and 7535 are public.
const REVERSE: &[&str] = &[
    "10.in-addr.arpa",
    "168.192.in-addr.arpa",
    "0.in-addr.arpa",
    "127.in-addr.arpa",
    "254.169.in-addr.arpa",
    "2.0.192.in-addr.arpa",
    "100.51.198.in-addr.arpa",
    "113.0.203.in-addr.arpa",
    "255.255.255.255.in-addr.arpa",
    "0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.ip6.arpa",
    "1.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.ip6.arpa",
    "c.f.ip6.arpa",
    "d.f.ip6.arpa",
    "8.e.f.ip6.arpa",
    "9.e.f.ip6.arpa",
    "a.e.f.ip6.arpa",
    "b.e.f.ip6.arpa",
    "8.b.d.0.1.0.0.2.ip6.arpa",
];

/// Returns all reverse zones. 172.16.0.0/12 and 100.64.0.0/10 (RFC 7793) yield one zone for each /16 network.
pub(in crate::dns) fn reverse() -> impl Iterator<Item = String> {
    let private = (16..=31).map(|number| format!("{number}.172.in-addr.arpa"));
    let shared = (64..=127).map(|number| format!("{number}.100.in-addr.arpa"));
    REVERSE.iter().map(|name| (*name).to_owned()).chain(private).chain(shared)
}
