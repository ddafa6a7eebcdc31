//! Directives that the parser keeps, drops and refuses. It loses nothing.

use proptest::prelude::*;

use super::token::{quoted, tokens};
use super::*;

const KEY: &str =
    "-----BEGIN PRIVATE KEY-----\nMIGHAgEAMBMGByqGSM49SECRETSECRETSECRET\n-----END PRIVATE KEY-----";
const CERTIFICATE: &str = "-----BEGIN CERTIFICATE-----\nMIIBszCCAVmgAwIBAgIUabc\n-----END CERTIFICATE-----";

fn block(tag: &str, content: &str) -> String {
    format!("<{tag}>\n{content}\n</{tag}>\n")
}

/// A file that is whole, and `more` in it.
fn with(more: &str) -> String {
    let blocks = [block("ca", CERTIFICATE), block("cert", CERTIFICATE), block("key", KEY)].concat();
    format!("client\ndev tun\nremote vpn.example.net 1194 udp\nremote-cert-tls server\n{more}\n{blocks}")
}

fn parsed(more: &str) -> Ovpn {
    parse(&with(more)).unwrap_or_else(|errors| panic!("{more}: {errors:?}"))
}

/// Line and text of the only error.
fn refused(more: &str) -> (usize, String) {
    let errors = parse(&with(more)).expect_err(more);
    assert_eq!(errors.len(), 1, "{errors:?}");
    (errors[0].line, errors[0].to_string())
}

#[test]
fn a_usual_file_is_read_whole() {
    let text = format!(
        "\u{feff}# of a provider\r\n; comment\r\n--client\r\ndev tun0\r\nproto udp\r\nremote VPN.Example.net 443\r\n\
         remote 2001:db8::1 1194 udp6\r\nremote 198.51.100.7\r\nport 5000\r\nresolv-retry infinite\r\nnobind\r\n\
         persist-key\r\npersist-tun\r\ncipher AES-256-CBC\r\ndata-ciphers AES-256-GCM:AES-128-GCM\r\nauth SHA512\r\n\
         verb 3\r\nauth-user-pass\r\nverify-x509-name \"O=A \\\"B\\\", CN=x\" subject # why\r\ntun-mtu 1400\r\n\
         tls-crypt [inline]\r\ntls-auth [inline] 1\r\n{}{}{}",
        block("ca", CERTIFICATE),
        block("tls-crypt", "-----BEGIN OpenVPN Static key V1-----\nff\n-----END OpenVPN Static key V1-----"),
        block("auth-user-pass", "alice\nwonderland")
    );
    let file = parse(&text).expect("well formed");
    let remotes: Vec<_> = file.remotes.iter().map(ToString::to_string).collect();
    assert_eq!(remotes, ["vpn.example.net:443/udp", "[2001:db8::1]:1194/udp", "198.51.100.7:5000/udp"]);
    assert_eq!(file.remotes[1].transport, Transport::Udp6);
    assert_eq!((file.cipher(), file.tun_mtu()), (Some("AES-256-GCM"), Some(1400)));
    assert_eq!(file.argument("verify-x509-name"), Some("O=A \"B\", CN=x"));
    assert_eq!(file.argument("key-direction"), Some("1"));
    let credentials = file.credentials.as_ref().expect("credentials");
    assert_eq!((credentials.username.expose(), credentials.password.expose()), ("alice", "wonderland"));
    assert!(file.asks_credentials && file.dropped.is_empty(), "{:?}", file.dropped);
    assert_eq!(file.blocks.len(), 2);
}

#[test]
fn connections_have_their_own_port_and_protocol() {
    let file = parsed(
        "proto tcp\n<connection>\nremote a.example\nport 443\nproto udp\n</connection>\n\
         <connection>\nremote b.example 80\n</connection>",
    );
    let remotes: Vec<_> = file.remotes.iter().map(ToString::to_string).collect();
    assert_eq!(remotes, ["vpn.example.net:1194/udp", "a.example:443/udp", "b.example:80/tcp"]);
}

#[test]
fn commands_routes_and_names_are_left_out_and_reported() {
    let file = parsed(
        "script-security 3\nup \"/bin/touch /tmp/canary\"\ndown /x\nplugin evil.so\nroute-up '/bin/sh -c x'\n\
         management /tmp/s unix\nsetenv PATH /evil\niproute /evil\nredirect-gateway def1\nroute 10.0.0.0 255.0.0.0\n\
         dhcp-option DNS 10.0.0.1\nlog /etc/passwd\nwritepid /etc/x\nchroot /\ncd /\nuser root\ndaemon\n\
         no-such-directive 1 2\nengine /tmp/evil.so",
    );
    let dropped: Vec<_> = file.dropped.iter().map(|dropped| dropped.name.as_str()).collect();
    let expected = [
        "script-security",
        "up",
        "down",
        "plugin",
        "route-up",
        "management",
        "setenv",
        "iproute",
        "redirect-gateway",
        "route",
        "dhcp-option",
        "log",
        "writepid",
        "chroot",
        "cd",
        "user",
        "daemon",
        "no-such-directive",
        "engine",
    ];
    assert_eq!(dropped, expected);
    assert_eq!(file.dropped[1].to_string(), "Line 6: up was left out: commands and plugins are never run.");
    for text in [run_text(&file, Run { ping: 10 }), render(&file, true)] {
        for word in ["evil", "canary", "/etc", "def1", "255.0.0.0", "10.0.0.1", "unix"] {
            assert!(!text.contains(word), "{word} in {}", *text);
        }
    }
}

#[test]
fn unsupported_required_directives_are_refused_with_their_line() {
    let cases = [
        ("crl-verify /etc/crl.pem", "files cannot be followed"),
        ("tls-auth ta.key 1", "between <tls-auth> and </tls-auth>"),
        ("pkcs12 x.p12", "files cannot be followed"),
        ("auth-user-pass /etc/shadow", "auth-user-pass alone"),
        ("askpass /etc/shadow", "key_passphrase"),
        ("config other.conf", "cannot be followed"),
        ("tls-verify /bin/check", "never run"),
        ("http-proxy 10.0.0.1 8080", "proxy"),
        ("socks-proxy 10.0.0.1", "proxy"),
        ("secret static.key", "static keys"),
        ("pkcs11-id x", "tokens"),
        ("server 10.0.0.0 255.0.0.0", "client"),
        ("dev tap0", "tap"),
        ("dev-type tap", "tap"),
        ("remote", "host"),
        ("remote a b c d", "host"),
        ("remote 300.1.2.3", "neither an address nor a name"),
        ("remote a.example 0", "port"),
        ("remote a.example 1 sctp", "protocol"),
        ("cipher", "1 arguments"),
        ("cipher AES;reboot", "colons"),
        ("tun-mtu 70000", "number"),
        ("verify-x509-name \"unclosed", "quote"),
        ("up\u{1}x y", "control"),
        ("=====", "neither a directive"),
        ("<key", "neither a directive"),
        ("static-challenge \"code\" 1", "one-time"),
    ];
    for (line, reason) in cases {
        let (number, text) = refused(line);
        assert_eq!(number, 5, "{line}: {text}");
        assert!(text.to_lowercase().contains(reason), "{line}: {text}");
    }
}

#[test]
fn a_file_that_is_not_whole_is_refused() {
    let problems = |text: &str| -> String {
        parse(text).expect_err(text).iter().map(|error| format!("{error}; ")).collect()
    };
    let nothing = problems("");
    for part in ["client", "remote", "<ca>", "auth-user-pass"] {
        assert!(nothing.contains(part), "{nothing}");
    }
    assert!(problems("<ca>\nx\n").contains("</ca> is missing"));
    assert!(problems("<connection>\nremote x.example\n").contains("</connection> is missing"));
    assert!(problems("</connection>").contains("never opened"));
    assert!(problems(&with(&block("tls-crypt", " "))).contains("empty"));
    assert!(problems(&with(&block("tls-crypt", "***"))).contains("hidden"));
    assert!(problems(&with(&block("secret", "x"))).contains("Static keys"));
    assert!(problems(&"x".repeat(MAX_SIZE + 1)).contains("longer"));
    let long = format!("verify-x509-name {}", "a".repeat(300));
    assert!(problems(&with(&long)).contains("longer than 255"));
}

#[test]
fn a_server_may_push_what_the_list_names_and_nothing_else() {
    let file = parsed("pull-filter accept redirect-gateway\npull-filter ignore \"ifconfig-ipv6\"");
    let text = run_text(&file, Run::default());
    let filters: Vec<&str> = text.lines().filter(|line| line.starts_with("pull-filter")).collect();
    assert_eq!(filters.first(), Some(&"pull-filter ignore ifconfig-ipv6"));
    assert_eq!(filters.last(), Some(&"pull-filter ignore \"\""));
    assert!(!text.contains("redirect"));
    assert!(!text.contains("ping 10"));
}

#[test]
fn pings_come_from_the_tunnel_only_where_the_file_has_none() {
    let pings = |more: &str| {
        let text = run_text(&parsed(more), Run { ping: 25 });
        text.lines()
            .filter(|line| line.starts_with("ping") || line.starts_with("keep"))
            .map(str::to_owned)
            .collect::<Vec<_>>()
    };
    assert_eq!(pings(""), ["ping 25", "ping-restart 100"]);
    assert_eq!(pings("keepalive 1 4"), ["keepalive 1 4"]);
}

#[test]
fn no_text_for_people_shows_a_key_or_a_password() {
    let more =
        [block("auth-user-pass", "alice-in\nwonderland"), block("tls-auth", "SECRETSTATICKEY")].concat();
    let file = parsed(&more);
    let shown = format!("{file:?}{}", *render(&file, false));
    for secret in ["SECRETSECRET", "wonderland", "alice-in", "SECRETSTATICKEY"] {
        assert!(!shown.contains(secret), "{secret} in {shown}");
    }
    assert!(shown.contains("MIIBszCCAVmgAwIBAgIUabc"), "certificates are public");
    let revealed = render(&file, true);
    assert!(revealed.contains("SECRETSECRET") && revealed.contains("wonderland"));
    // OpenVPN gets the password on request.
    let run = run_text(&file, Run::default());
    assert!(run.contains("SECRETSECRET") && run.contains("\nauth-user-pass\n"));
    assert!(!run.contains("wonderland"));
}

#[test]
fn errors_quote_no_argument() {
    let secret = "HUNTER2HUNTER2";
    for line in [
        secret.to_owned(),
        format!("secret {secret}"),
        format!("cipher {secret} {secret} {secret}"),
        format!("remote {secret}: 1"),
        format!("<key>\n{secret}"),
        format!("{}{secret}", "a".repeat(40)),
    ] {
        let shown = format!("{:?}", parse(&with(&line)).expect_err("refused"));
        assert!(!shown.contains(secret), "{shown}");
    }
}

#[test]
fn words_are_read_as_openvpn_reads_them() {
    let read = |line: &str| tokens(line).expect("words");
    assert_eq!(read("  a \"b c\" 'd \\e' f\\ g # h"), ["a", "b c", "d \\e", "f g"]);
    assert_eq!(read("a \"\" ;b"), ["a", ""]);
    assert_eq!(read("a b#c"), ["a", "b#c"]);
    assert_eq!(read("# all of it"), [""; 0]);
    assert!(tokens("a \"b").is_err() && tokens("a b\\").is_err());
}

#[test]
fn every_rule_has_one_name() {
    let names: std::collections::BTreeSet<_> = directive::RULES.iter().map(|(name, _)| name).collect();
    assert_eq!(names.len(), directive::RULES.len());
}

proptest! {
    #[test]
    fn any_text_is_read_or_refused(text in "(client|remote|<ca>|</ca>|<key>|\"|'|\\\\|#|[ -~\\n\\t\\PC]){0,60}") {
        if let Ok(file) = parse(&text) {
            let again = parse(&render(&file, true)).expect("what was read is read again");
            prop_assert_eq!(again, Ovpn { dropped: Vec::new(), ..file });
        }
    }

    #[test]
    fn any_word_is_written_so_that_it_is_read_back(word in "[ -~]{0,60}", other in "[!-~\\u{e0}-\\u{ff}]{1,20}") {
        let line = format!("x {} {}", quoted(&word), quoted(&other));
        prop_assert_eq!(tokens(&line), Ok(vec!["x".to_owned(), word, other]));
    }

    #[test]
    fn a_file_of_usual_lines_survives_being_written(
        lines in proptest::collection::vec(
            proptest::sample::select(vec![
                "cipher AES-256-GCM", "auth SHA256", "reneg-sec 0", "keepalive 10 60", "verb 4", "up /bin/x",
                "remote x.example 443 tcp", "remote-random", "tls-version-min 1.2 or-highest", "port 443",
                "auth-user-pass", "verify-x509-name \"a b\\\\c\" name", "proto tcp", "route 1.2.3.4",
                "<tls-crypt-v2>\nabc\n\n</tls-crypt-v2>", "<connection>\nremote y.example\nproto udp6\n</connection>",
            ]),
            0..12,
        )
    ) {
        if let Ok(file) = parse(&with(&lines.join("\n"))) {
            let again = parse(&render(&file, true)).expect("what was read is read again");
            prop_assert_eq!(again, Ovpn { dropped: Vec::new(), ..file });
        }
    }
}

#[test]
fn options_of_a_connection_stay_with_its_servers() {
    let file = parsed(
        "mssfix 1400\n<connection>\nremote a.example 443 tcp\nconnect-timeout 7\n</connection>\n\
         <connection>\nremote b.example 1194 udp\nfragment 1300\ntun-mtu 1350\n</connection>",
    );
    assert!(!file.has("fragment") && file.has("mssfix"), "{:?}", file.directives);
    assert_eq!(file.tun_mtu(), Some(1350), "the smallest fits each server");
    let text = run_text(&file, Run::default());
    let fragment = text.find("fragment 1300").expect("the option");
    let block = text[..fragment].rfind("<connection>").expect("its block");
    assert!(text[block..fragment].contains("remote b.example 1194 udp"), "{}", *text);
    assert!(!text[block..].contains("a.example"), "{}", *text);
    assert_eq!(parse(&render(&file, true)).expect("reads its own text"), file);
    let (_, text) = refused("<connection>\nremote a.example\ncipher AES-256-GCM\n</connection>");
    assert!(text.contains("<connection>"), "{text}");
}

#[test]
fn last_one_of_a_file_and_a_block_counts() {
    let file = parsed("ca ca.crt\ntls-auth ta.key 1\n<tls-auth>\nff\n</tls-auth>\n<ca>\nfirst\n</ca>");
    let certificate = file.block(Tag::Ca).expect("the certificate");
    assert_eq!(certificate.text.expose().trim(), CERTIFICATE, "that after the file and the first block");
    assert_eq!(file.argument("key-direction"), Some("1"));
    let after = parse(&format!("{}ca ca.crt\n", with(""))).expect_err("OpenVPN would read the file");
    assert!(after[0].to_string().contains("comes after <ca>"), "{}", after[0]);
}

#[test]
fn directives_that_carry_a_meaning_are_obeyed() {
    let file = parsed("remote-random-hostname\nsetenv opt tls-version-min 1.2\nsetenv opt no-such-thing 1");
    assert!(file.has("remote-random-hostname"), "{:?}", file.directives);
    assert_eq!(file.argument("tls-version-min"), Some("1.2"));
    assert_eq!(file.dropped.len(), 1, "{:?}", file.dropped);
    let text = run_text(&file, Run::default());
    assert!(!text.contains("remote-random-hostname"), "the gateway resolves the names: {}", *text);
}

#[test]
fn name_of_a_certificate_may_have_letters_of_any_language() {
    let file = parsed("verify-x509-name \"O=Büro, CN=Zürich\" subject");
    assert_eq!(file.argument("verify-x509-name"), Some("O=Büro, CN=Zürich"));
    assert_eq!(parse(&render(&file, true)).expect("reads its own text"), file);
}
