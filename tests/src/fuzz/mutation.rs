//! Mutations without coverage feedback, which the test suite applies to the corpora. The same seed gives the same
//! inputs.

/// Dictionary of a target's format.
pub type Words = [&'static [u8]];

pub const PACKET: &Words = &[
    &[0x08, 0x00, 0x45],
    &[0x86, 0xdd, 0x60],
    &[0x81, 0x00, 0x00, 0x07],
    &[0x88, 0xa8, 0x00, 0x07],
    &[0x91, 0x00],
    &[0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff],
    &[44, 0],
    &[0x47, 0x00, 0x80, 0x00],
];
pub const CLIENT_HELLO: &Words = &[
    &[0x16, 3, 1, 1, 0, 1, 0, 0, 252, 3, 3],
    &[0, 0, 0, 15, 0, 13, 0, 0, 10],
    b"dns.google",
    &[0, 51, 2, 0],
    &[0x1a, 0x1a, 0, 1, 0],
];
pub const QUIC_INITIAL: &Words = &[
    &[6, 0, 0x40, 4, 1, 0, 0],
    &[6, 0x40, 64, 0x40, 64],
    &[2, 0, 0, 1, 0, 0, 0],
    &[0xc3, 0, 0, 0, 1, 8],
    &[0xd3, 0x6b, 0x33, 0x43, 0xcf, 8],
    &[0, 0, 0, 15, 0, 13, 0, 0, 10],
];
pub const ROUTER_ADVERTISEMENT: &Words = &[
    &[134, 0],
    &[3, 4, 64, 0xc0, 0, 1, 0, 0, 0, 1, 0, 0],
    &[5, 1, 0, 0, 0, 0, 5, 220],
    &[25, 3, 0, 0],
    &[31, 2, 0, 0, 0, 0, 0, 9, 3, b'l', b'a', b'n', 0],
    &[3, 0],
];
pub const HOSTAPD_REPLY: &Words = &[
    b"state=",
    b"bss[0]=",
    b"ssid[15]=",
    b"num_sta[16]=",
    b"\\x",
    b"\\",
    b"02:00:00:00:01:00\n",
    b"flags=[AUTHORIZED]",
    b"AKMSuiteSelector=00-0f-ac-8",
    b"signal=-",
];

pub const DHCP_REPORT: &Words = &[
    b"gatewayd-lease\t",
    b"bound\t",
    b"renew\t",
    b"nak\t",
    b"192.0.2.7\t",
    b"24\t",
    b"255.255.255.0\t",
    b"0.0.0.0",
    b"\t\t",
];
pub const CAPTIVE_ANSWER: &Words = &[
    b"HTTP/1.1 204 ",
    b"HTTP/1.0 302 Found\r\n",
    b"\r\n\r\n",
    b"Location: http://portal.example/\r\n",
    b"X-Challenge-Response: response 5eed5eed\r\n",
    b"Content-Length: 0\r\n",
    b"content-length: 7\r\n",
];
pub const DHCP6: &Words = &[
    &[2, 0],
    &[7, 0],
    &[11, 0],
    &[0, 1, 0, 10, 0, 3, 0, 1, 2, 0, 0, 0, 0, 1],
    &[0, 2, 0, 10, 0, 3, 0, 1, 2, 0, 0, 0, 0, 9],
    &[0, 6, 0, 4, 0, 23, 0, 24],
    &[0, 25, 0, 41, 0, 0, 0, 1],
    &[0, 26, 0, 25],
    &[0, 13, 0, 2, 0, 3],
    &[56, 0x20, 1, 0xd, 0xb8],
    &[0xff, 0xff, 0xff, 0xff],
];
pub const PSEUDONYMS: &Words = &[
    b"\n",
    b"https://",
    b"@mail.example",
    b"203.0.113.7",
    b"2001:db8::7",
    b"/24",
    b"02:00:00:00:00:07",
    b"example.org",
    b"name{name=\"",
    b"\\\"",
    b"{\"name\":\"",
    b"\"}",
    b"[",
    b"]",
    b",",
];
pub const CAPTURED_PACKET: &Words = &[
    &[0x81, 0, 0, 7],
    &[8, 0, 0x45],
    &[0x86, 0xdd, 0x60],
    &[8, 6, 0, 1, 8, 0, 6, 4],
    &[0, 53],
    &[0x14, 0xe9],
    &[0x12, 0xb5],
    &[0x0d, 0xd8],
    &[0x16, 3, 1],
    &[0, 0, 0, 12, 0, 10, 0],
    &[0xc3, 0, 0, 0, 1],
    &[0x21, 0x12, 0xa4, 0x42],
    &[1, 0, 0, 0],
    &[0x63, 0x82, 0x53, 0x63],
    &[0xc0, 12],
    &[44, 0],
];
pub const FLOW_RECORD: &Words = &[
    &[0xff, 0x0f, 6, 0xbb, 1],
    &[0x02, 0, 17, 53, 0],
    &[0x80, 0x80, 0x80, 1],
    &[0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 1],
    b"\x0bwww.example",
    b"\x04wg-a\x01\x08vpn:wg-a",
];

pub const PLAN_RECORD: &Words = &[
    &[1, 1, 0, 0],
    &[0xff, 0xff, 0xff, 0xff],
    b"network",
    b"fact/neighbour/02:00:00:00:00:01",
    b"fact/proxies",
    b"state/revisions",
    b"[\"192.0.2.1\"]",
    b"{}",
];

/// Words of replies of language models.
pub const ASSISTANT: &Words = &[
    b"{\"message\":{\"content\":\"",
    b"{\"choices\":[{\"message\":",
    b"\"models\":[",
    b"\"data\":[{\"id\":",
    b"\"status\":",
    b"\"error\":",
    b"\"tools\":[{\"tool\":\"evaluate\"}",
    b"\"suggestions\":[",
    b"\"confidence\":1e309",
    b"</data>",
    b"null",
];

pub const FEDERATION: &Words = &[
    b"\"schema\":1",
    b"\"schema\":2",
    b"\"payload\":\"",
    b"\"public_key\":\"",
    b"\"signature\":\"",
    b"\"kinds\":{",
    b"\"devices\":{\"revision\":1,\"hash\":\"",
    b"\"objects\":{\"devices\":[",
    b"\"have\":{\"dns\":\"\"}",
    b"\"id\":\"0193f3a8-0c5e-7cc2-8a0e-2f6d1b9f4a11\"",
    b"AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA=",
];

pub const FEDERATION_BUS: &Words = &[
    b"MSG gwfed.devices.U 2 ",
    b"HMSG _INBOX.U 1 12 ",
    b"NATS/1.0 503\r\n\r\n",
    b"INFO {",
    b"-ERR 'x'\r\n",
    b"\r\n",
    b"\"kind\":\"dns\"",
    b"\"heads\":{\"devices\":",
    b"\"offer\":{\"revision\":",
];

pub const STUN: &Words = &[
    &[1, 1],
    &[1, 0x11],
    &[0x21, 0x12, 0xa4, 0x42],
    &[0, 0x20, 0, 8, 0, 1],
    &[0, 0x20, 0, 20, 0, 2],
    &[0, 1, 0, 8, 0, 1],
    &[0, 9, 0, 4, 0, 0, 4, 0],
    &[0x80, 0x22, 0, 3],
];
pub const MESH: &Words = &[
    &[0, 130, 1, 0, 96],
    &[4, 0, 16],
    &[4, 0x0f, 0xfd],
    &[2, 0, 0, 0, 72],
    &[4, 0, 0, 0, 33],
    &[0, 1, 0, 0, 0x21, 0x12, 0xa4, 0x42],
    &[0x80, 0x22, 0, 8],
    b"\"NodeKey\":\"nodekey:",
    b"\"Hostinfo\":{",
    b"\"RoutableIPs\":[\"10.0.0.0/8\"]",
    b"\"Auth\":{\"AuthKey\":\"",
    b"\"Endpoints\":[\"192.0.2.1:1\"]",
    b"null",
];
pub const DHCP4: &Words = &[
    &[53, 1, 1],
    &[53, 1, 3],
    &[53, 1, 4],
    &[53, 1, 7],
    &[54, 4, 192, 168, 1, 1],
    &[50, 4, 192, 168, 1, 100],
    &[61, 3, 0, 1, 2],
    &[52, 1, 3],
    &[82, 2, 5, 0],
    &[81, 3, 4, 0, 0],
    &[55, 3, 1, 121, 200],
    &[57, 2, 2, 64],
    &[12, 1, b'x'],
    &[255],
];
pub const PLAN: &Words = &[&[0, 0, 0], &[9], &[0xf0], &[0xff, 0xff], &[4, 0, 0, 0], &[11, 0, 0, 0]];
pub const CONF: &Words = &[
    b"[Interface]\n",
    b"[Peer]\n",
    b"PrivateKey = yAnz5TF+lXXJte14tji3zlMNq+hd2rYUIgJBgB3fBmk=\n",
    b"PublicKey = xTIBA5rboUvnH4htodjb6e697QjLERt1NAB4mZqp8Dg=\n",
    b"PresharedKey = FpCyhws9cxwWoV4xELtfJvjJN+zQVRPISllRWgeopVE=\n",
    b"AllowedIPs = 0.0.0.0/0, ::/0\n",
    b"Address = 10.0.0.2/32\n",
    b"Endpoint = [2001:db8::1]:51820\n",
    b"DNS = 10.0.0.1, example.com\n",
    b"PersistentKeepalive = off\n",
    b"PostUp = ",
    b"\xef\xbb\xbf",
    b"\r\n",
    b"\xe2\x80\xa8",
];
pub const OVPN: &Words = &[
    b"client\n",
    b"remote vpn.example.net 1194 udp\n",
    b"<ca>\nx\n</ca>\n",
    b"<cert>\nx\n</cert>\n<key>\nSECRETSECRET\n</key>\n",
    b"<connection>\n",
    b"</connection>\n",
    b"auth-user-pass\n",
    b"<auth-user-pass>\nalice\nwonderland\n</auth-user-pass>\n",
    b"tls-auth [inline] 1\n",
    b"verify-x509-name \"a \\\" b\" name\n",
    b"pull-filter ignore ",
    b"up /bin/true\n",
    b"script-security 3\n",
    b"--",
    b"'",
    b"\"",
    b"\\",
    b"\xef\xbb\xbf",
    b"\r\n",
];
pub const YAML: &Words = &[
    b"network:\n",
    b"  lan_iface: [eth1, eth2]\n",
    b"auth:\n  api_keys:\n    - {name: a, key: 0123456789abcdef}\n",
    b"listen: {api_addr: \"[::1]:80\"}\n",
    b"tunnels:\n  - ",
    b"&a ",
    b"*a",
    b"<<: *a\n",
    b"!!int ",
    b".inf",
    b"- ",
    b": ",
    b"---\n",
    b"|\n  ",
    b"\"\\u0000\"",
];
pub const JSON: &Words = &[
    b"\"name\":",
    b"\"source_type\":\"destination\",",
    b"\"source_value\":\"10.0.0.0/8:443\",",
    b"\"hops\":[{\"type\":\"vpn\",\"target\":\"a\"}],",
    b"\"peers\":[{}],",
    b"\"id\":\"00000000-0000-7000-8000-000000000000\",",
    b"\"private_key\":\"QAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAEE=\",",
    b"\"expires_at\":\"2026-11-20T12:00:00Z\",",
    b"null",
    b"1e400",
    b"-1",
    b"18446744073709551616",
    b"{}",
    b"[]",
    b"\\u0000",
];
pub const DNS: &Words = &[
    &[0xc0, 0x0c],
    &[0xc0, 0x0c, 0, 1, 0, 1, 0, 0, 0, 60, 0, 4, 192, 0, 2, 1],
    &[0xc0, 0x0c, 0, 5, 0, 1, 0, 0, 0, 60, 0, 4, 1, b'a', 0xc0, 0x0c],
    &[0, 0, 41, 0x04, 0xd0, 0, 0, 0x80, 0, 0, 0],
    &[0, 15, 0, 2, 0, 15],
    &[0x81, 0x80, 0, 1, 0, 1],
    &[1, b'a'],
    &[0],
    &[0, 6, 0, 1],
    &[0, 65, 0, 1],
    &[0, 46, 0, 1],
    &[0xff, 0xff],
];
pub const LISTS: &Words = &[
    b"0.0.0.0 ads.example.com\n",
    b"||ads.example.com^",
    b"@@||",
    b"|exact.example^\n",
    b"$important",
    b"$dnstype=AAAA|~A",
    b"$denyallow=x.example|y.example",
    b"/^ad[0-9]+\\./",
    b"*.example.com\n",
    b"||ad*.example^\n",
    b"$ORIGIN rpz.example.\n",
    b"@ IN SOA a. b. (1 2 3\n4 5)\n",
    b"bad.example CNAME .\n",
    b"*.bad.example 60 IN CNAME *.\n",
    b"good.example CNAME rpz-passthru.\n",
    b"wall.example A 192.0.2.9\n",
    b"24.0.2.0.192.rpz-ip CNAME .\n",
    b"32.zz.db8.2001.rpz-ip CNAME .\n",
    b"192.0.2.0/24\n",
    b"2001:db8::/32 ; x\n",
    b"b\xc3\xbccher.example\n",
    b"\xef\xbb\xbf",
    b"\r\n",
    b"#",
];
pub const ZONE: &Words = &[
    b"www A 192.0.2.1\n",
    b"www AAAA 2001:db8::1\n",
    b"* CNAME www.example\n",
    b"*.a A 192.0.2.2\n",
    b"b CNAME c.example\n",
    b"c CNAME b.example\n",
    b"far CNAME www.example.org\n",
    b"@ MX 10 mail.example\n",
    b"sub NS ns.sub.example\n",
    b"ns.sub A 192.0.2.53\n",
    b"_sip._tcp SRV 1 2 5060 www.example\n",
    b"t TXT \"a\" \"b\\034\"\n",
    b"@ CAA 0 issue \"ca.example\"\n",
    b"@ HTTPS 1 . alpn=h2,h3 ipv4hint=192.0.2.1 ech=AAEC\n",
    b"s SVCB 2 a.example mandatory=port port=53 key667=\"x y\"\n",
    b"a.b.c A 192.0.2.3\n",
    b" ",
    b"\n",
];

/// An endless generator of numbers (SplitMix64, by Sebastiano Vigna, public domain).
#[derive(Debug)]
pub struct Numbers(u64);

impl Numbers {
    pub fn new(seed: u64) -> Self {
        Self(seed)
    }

    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    /// Returns a number below `end`, which is more than 0.
    pub fn below(&mut self, end: usize) -> usize {
        (self.next() % end as u64) as usize
    }
}

/// Returns an input of the corpus with a few changes, at most `longest` bytes long.
pub fn mutated(corpus: &[Vec<u8>], words: &Words, longest: usize, numbers: &mut Numbers) -> Vec<u8> {
    let mut input = corpus[numbers.below(corpus.len())].clone();
    for _ in 0..=numbers.below(6) {
        change(&mut input, corpus, words, numbers);
    }
    input.truncate(longest);
    input
}

fn change(input: &mut Vec<u8>, corpus: &[Vec<u8>], words: &Words, numbers: &mut Numbers) {
    let at = numbers.below(input.len() + 1);
    match numbers.below(8) {
        0 | 1 if at < input.len() => input[at] ^= 1 << numbers.below(8),
        2 if at < input.len() => input[at] = numbers.next().to_le_bytes()[0],
        3 => input.insert(at, numbers.next().to_le_bytes()[0]),
        4 => {
            let end = (at + 1 + numbers.below(8)).min(input.len());
            input.drain(at..end);
        }
        5 => {
            let word = words[numbers.below(words.len())];
            input.splice(at..at, word.iter().copied());
        }
        // Copies a part of the input to another offset.
        6 => {
            let end = (at + 1 + numbers.below(32)).min(input.len());
            let piece = input[at..end].to_vec();
            let to = numbers.below(input.len() + 1);
            input.splice(to..to, piece);
        }
        _ => {
            let other = &corpus[numbers.below(corpus.len())];
            let from = numbers.below(other.len() + 1);
            input.truncate(at);
            input.extend(&other[from..]);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_same_seed_makes_the_same_inputs_and_another_seed_others() {
        let corpus = [b"[Interface]".to_vec(), Vec::new()];
        let make = |seed| {
            let mut numbers = Numbers::new(seed);
            (0..50).map(|_| mutated(&corpus, CONF, 64, &mut numbers)).collect::<Vec<_>>()
        };
        assert_eq!(make(1), make(1));
        assert_ne!(make(1), make(2));
        assert!(make(3).iter().all(|input| input.len() <= 64));
    }
}
