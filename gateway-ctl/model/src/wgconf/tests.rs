//! Files that the parser accepts and refuses. It loses nothing.

use proptest::prelude::*;

use super::*;

const PRIVATE: &str = "yAnz5TF+lXXJte14tji3zlMNq+hd2rYUIgJBgB3fBmk=";
const PUBLIC: &str = "xTIBA5rboUvnH4htodjb6e697QjLERt1NAB4mZqp8Dg=";
const SHARED: &str = "FpCyhws9cxwWoV4xELtfJvjJN+zQVRPISllRWgeopVE=";

fn problem(text: &str) -> (usize, Problem) {
    let error = parse(text).expect_err("must be refused");
    let shown = format!("{error} {error:?}");
    for secret in [PRIVATE, SHARED] {
        assert!(!shown.contains(&secret[..10]), "the error shows a key");
    }
    (error.line, error.problem)
}

#[test]
fn a_usual_file_is_read_whole() {
    let text = format!(
        "\u{feff}# made by a provider\r\n[interface]\r\nPRIVATEKEY={PRIVATE}\r\nAddress = 10.2.0.2/24, fd00::2\r\n\
         Address = 192.168.7.1\r\nDNS = 10.2.0.1, corp.example # inner\r\nMTU = 1380\r\nListenPort = 51820\r\n\r\n\
         [Peer]\r\nPublicKey = {PUBLIC}\r\nPresharedKey = {SHARED}\r\nEndpoint = [2001:db8::1]:51820\r\n\
         AllowedIPs = 0.0.0.0/0\r\nAllowedIPs = ::/0,10.9.8.7/16\r\nPersistentKeepalive = 25\r\n"
    );
    let conf = parse(&text).expect("well formed");
    assert_eq!(conf.private_key, Key::from_base64(PRIVATE).expect("a key"));
    let addresses: Vec<_> = conf.addresses.iter().map(ToString::to_string).collect();
    assert_eq!(addresses, ["10.2.0.2/24", "fd00::2/128", "192.168.7.1/32"]);
    assert_eq!(conf.dns, ["10.2.0.1", "corp.example"]);
    assert_eq!((conf.mtu, conf.listen_port), (Some(1380), Some(51820)));
    let peer = &conf.peers[0];
    assert_eq!(encode_key(&peer.public_key), PUBLIC);
    assert_eq!(peer.preshared_key, Key::from_base64(SHARED).ok());
    assert_eq!(peer.endpoint.as_deref(), Some("[2001:db8::1]:51820"));
    let allowed: Vec<_> = peer.allowed_ips.iter().map(ToString::to_string).collect();
    assert_eq!(allowed, ["0.0.0.0/0", "::/0", "10.9.0.0/16"]);
    assert_eq!(peer.persistent_keepalive, Some(25));
    assert!(conf.ignored.is_empty());
}

#[test]
fn hooks_are_named_and_not_kept() {
    let text = format!(
        "[Interface]\nPrivateKey = {PRIVATE}\npostup = iptables -F; echo = x\nPostUp = reboot\nPreUp=a\nPreDown=b\n\
         PostDown=c\nTable = off\nSaveConfig = true\nFwMark = 0x1\nJc = 4\n"
    );
    let conf = parse(&text).expect("hooks are no error");
    assert_eq!(
        conf.ignored,
        ["PostUp", "PreUp", "PreDown", "PostDown", "Table", "SaveConfig", "FwMark", "Jc"]
    );
    let rendered = render(&conf, true);
    assert!(!rendered.contains("iptables") && !rendered.contains("reboot"));
}

#[test]
fn a_misspelt_key_is_named_with_the_one_that_is_meant() {
    let problem_of = |key: &str| problem(&format!("[Interface]\n{key} = {PRIVATE}\n"));
    for (written, meant) in [("PrivatKey", "PrivateKey"), ("Adress", "Address"), ("ListnPort", "ListenPort")]
    {
        let expected = Problem::UnknownKey { written: written.to_owned(), meant };
        assert_eq!(problem_of(written), (2, expected));
    }
    let text = problem_of("PrivatKey").1.to_string();
    assert_eq!(text, "unknown key PrivatKey; did you mean PrivateKey?");
    assert_eq!(problem_of("Comment").1, Problem::Missing("PrivateKey"), "a key of another program");
}

#[test]
fn keepalive_off_and_zero_mean_none() {
    for off in ["off", "OFF", "0"] {
        let text = format!(
            "[Interface]\nPrivateKey={PRIVATE}\n[Peer]\nPublicKey={PUBLIC}\nPersistentKeepalive={off}\n"
        );
        assert_eq!(parse(&text).expect("well formed").peers[0].persistent_keepalive, None);
    }
}

#[test]
fn errors_name_the_line_and_the_key() {
    let head = format!("[Interface]\nPrivateKey = {PRIVATE}\n");
    let peer = format!("{head}[Peer]\nPublicKey = {PUBLIC}\n");
    let value = |key, wanted| Problem::Value { key, wanted };
    let key = "a base64 key of 32 bytes";
    assert_eq!(problem(""), (0, Problem::NoInterface));
    assert_eq!(problem("PrivateKey = x"), (1, Problem::OutsideSection));
    assert_eq!(problem("[Interface]\n[Interface]"), (2, Problem::SecondInterface));
    assert_eq!(problem("\n[Interface]\n"), (2, Problem::Missing("PrivateKey")));
    assert_eq!(problem("[Inter]"), (1, Problem::UnknownSection));
    assert_eq!(problem(&format!("{head}nonsense")), (3, Problem::Syntax));
    assert_eq!(problem(&format!("{head}PrivateKey = {PRIVATE}")), (3, Problem::Twice("PrivateKey")));
    assert_eq!(problem(&format!("[Interface]\nPrivateKey = {PRIVATE}x")), (2, value("PrivateKey", key)));
    assert_eq!(problem(&format!("[Interface]\n{PRIVATE}")), (2, Problem::Syntax));
    assert_eq!(
        problem(&format!("[Interface]\nPublicKey = {PRIVATE}")),
        (2, Problem::Misplaced { key: "PublicKey", section: "Interface" })
    );
    assert_eq!(problem(&format!("{head}[Peer]\n")), (3, Problem::Missing("PublicKey")));
    assert_eq!(problem(&format!("{peer}[Peer]\nPublicKey={PUBLIC}")), (5, Problem::SamePeer));
    assert_eq!(problem(&format!("{peer}PresharedKey = {}", &SHARED[1..])), (5, value("PresharedKey", key)));
    for (line, wrong) in [("MTU = 575", "MTU"), ("ListenPort = 70000", "ListenPort"), ("DNS = a b", "DNS")] {
        let (at, problem) = problem(&format!("{head}{line}"));
        assert!(at == 3 && matches!(problem, Problem::Value { key, .. } if key == wrong), "{line}");
    }
    for endpoint in ["1.2.3.4", "1.2.3.4:0", "2001:db8::1:51820", "[1.2.3.4]:5", "a b:5", "x:+5", ":5"] {
        let (at, problem) = problem(&format!("{peer}Endpoint = {endpoint}"));
        assert!(at == 5 && matches!(problem, Problem::Value { key: "Endpoint", .. }), "{endpoint}");
    }
}

#[test]
fn an_overlong_text_is_refused() {
    assert_eq!(problem(&"#".repeat(MAX_SIZE + 1)), (0, Problem::TooLong));
}

#[test]
fn keys_are_hidden_unless_revealed_and_never_in_debug() {
    let text =
        format!("[Interface]\nPrivateKey={PRIVATE}\n[Peer]\nPublicKey={PUBLIC}\nPresharedKey={SHARED}\n");
    let conf = parse(&text).expect("well formed");
    let hidden = render(&conf, false);
    assert!(hidden.contains("PrivateKey = ***") && hidden.contains("PresharedKey = ***"));
    assert!(!hidden.contains(PRIVATE) && !hidden.contains(SHARED));
    let bytes = format!("{:?}", conf.private_key.expose());
    let debug = format!("{conf:?}");
    assert!(
        !debug.contains(PRIVATE)
            && !debug.contains(SHARED)
            && !debug.contains(bytes.trim_matches(['[', ']']))
    );
    assert!(render(&conf, true).contains(PRIVATE));
}

#[test]
fn only_the_canonical_base64_of_32_bytes_is_a_key() {
    assert_eq!(decode_key(PUBLIC).map(|key| encode_key(&key)), Ok(PUBLIC.to_owned()));
    let loose_bits = PUBLIC.replace("Dg=", "Dh=");
    let unpadded = PUBLIC.trim_end_matches('=');
    let spaced = format!("{PUBLIC} ");
    for bad in ["", "AAAA", unpadded, &loose_bits, &spaced, &"A".repeat(44)] {
        assert_eq!(decode_key(bad), Err(KeyError), "{bad:?}");
    }
}

fn network() -> impl Strategy<Value = IpNet> {
    prop_oneof![
        (any::<[u8; 4]>(), 0..=32u8).prop_map(|(a, len)| IpNet::new(a.into(), len).expect("length fits")),
        (any::<[u8; 16]>(), 0..=128u8).prop_map(|(a, len)| IpNet::new(a.into(), len).expect("length fits")),
    ]
}

fn endpoint() -> impl Strategy<Value = String> {
    prop_oneof![
        (any::<[u8; 4]>(), 1..=u16::MAX)
            .prop_map(|(a, port)| std::net::SocketAddr::from((a, port)).to_string()),
        (any::<[u8; 16]>(), 1..=u16::MAX)
            .prop_map(|(a, port)| std::net::SocketAddr::from((a, port)).to_string()),
        ("[a-z0-9][a-z0-9.-]{0,40}", 1..=u16::MAX).prop_map(|(host, port)| format!("{host}:{port}")),
    ]
}

prop_compose! {
    fn peer()(
        public_key: [u8; 32],
        preshared_key in proptest::option::of(any::<[u8; 32]>().prop_map(Key::new)),
        endpoint in proptest::option::of(endpoint()),
        allowed_ips in proptest::collection::vec(network().prop_map(|net| net.trunc()), 0..5),
        persistent_keepalive in proptest::option::of(1..=u16::MAX),
    ) -> WgConfPeer {
        WgConfPeer { public_key, preshared_key, endpoint, allowed_ips, persistent_keepalive }
    }
}

prop_compose! {
    fn conf()(
        private_key in any::<[u8; 32]>().prop_map(Key::new),
        addresses in proptest::collection::vec(network(), 0..4),
        dns in proptest::collection::vec("[a-z0-9][a-z0-9.-]{0,20}", 0..3),
        mtu in proptest::option::of(576..=u16::MAX),
        listen_port: Option<u16>,
        peers in proptest::collection::vec(peer(), 0..4),
    ) -> WgConf {
        WgConf { private_key, addresses, dns, mtu, listen_port, peers, ignored: Vec::new() }
    }
}

/// Text that looks enough like a `.conf` to get deep into the parser.
fn likely_text() -> impl Strategy<Value = String> {
    let word = prop_oneof![
        Just("[Interface]\n".to_owned()),
        Just("[Peer]\n".to_owned()),
        Just(format!("PrivateKey = {PRIVATE}\n")),
        Just(format!("PublicKey = {PUBLIC}\n")),
        "(Address|AllowedIPs|DNS|MTU|Endpoint|PostUp|Table|PersistentKeepalive|ListenPort) ?= ?\\PC{0,30}\r?\n",
        "\\PC{0,20}\n",
    ];
    let plausible = "(Address|AllowedIPs|DNS|MTU|Endpoint|PersistentKeepalive) = [0-9a-f:./, ]{0,12}\n";
    let words = proptest::collection::vec(prop_oneof![word, plausible], 0..8);
    (any::<bool>(), words).prop_map(|(headed, words)| {
        let head = if headed { format!("[Interface]\nPrivateKey = {PRIVATE}\n") } else { String::new() };
        head + &words.concat()
    })
}

proptest! {
    #[test]
    fn rendering_and_parsing_again_changes_nothing(conf in conf()) {
        prop_assert_eq!(parse(&render(&conf, true)), Ok(conf));
    }

    #[test]
    fn parsed_files_survive_the_round_trip(text in likely_text()) {
        if let Ok(mut conf) = parse(&text) {
            let again = parse(&render(&conf, true));
            conf.ignored.clear();
            prop_assert_eq!(again, Ok(conf));
        }
    }

    #[test]
    fn arbitrary_bytes_never_panic(bytes: Vec<u8>) {
        let _ = parse(&String::from_utf8_lossy(&bytes));
    }

    #[test]
    fn every_key_survives_base64(bytes: [u8; 32]) {
        prop_assert_eq!(decode_key(&encode_key(&bytes)), Ok(bytes));
    }
}

#[test]
fn file_of_amneziawg_with_other_headers_is_refused_and_one_with_junk_alone_is_not() {
    let file = |extra: &str| {
        format!(
            "[Interface]\nPrivateKey = {PRIVATE}\nAddress = 10.8.1.2/32\n{extra}\n[Peer]\nPublicKey = {PUBLIC}\n"
        )
    };
    for (line, key) in [("H1 = 1234567890", "H1"), ("s1 = 86", "S1"), ("H4=5-9", "H4"), ("S3 = 10", "S3")] {
        assert_eq!(problem(&file(line)), (4, Problem::Amnezia(key)), "{line}");
    }
    let plain = "Jc = 4\nJmin = 40\nJmax = 70\nS1 = 0\nS2 = 0\nH1 = 1\nH2 = 2\nH3 = 3\nH4 = 4\nI1 = <b 0xff>";
    let conf = parse(&file(plain)).expect("a server of WireGuard ignores junk");
    assert!(conf.ignored.iter().any(|name| name == "Jc"), "{:?}", conf.ignored);
}
