//! Operations as servers write them, whole and in pieces.

use proptest::prelude::*;

use super::*;

const MAX: usize = 1 << 20;

fn whole(text: &str) -> Incoming {
    let (incoming, length) = parse(text.as_bytes(), MAX).unwrap().unwrap();
    assert_eq!(length, text.len());
    incoming
}

#[test]
fn operations_of_a_server_are_read() {
    let greeting = whole(
        "INFO {\"server_id\":\"N\",\"version\":\"2.9.10\",\"max_payload\":1048576,\"headers\":true,\"nonce\":\"abcdefgh\"}\r\n",
    );
    let Incoming::Greeting(greeting) = greeting else { panic!("{greeting:?}") };
    assert_eq!(
        (greeting.version.as_str(), greeting.max_payload, greeting.headers),
        ("2.9.10", 1_048_576, true)
    );
    assert_eq!(whole("PING\r\n"), Incoming::Ping);
    assert_eq!(whole("+OK\r\n"), Incoming::Ok);
    let refused = Incoming::Error("Authorization Violation".to_owned());
    assert_eq!(whole("-ERR 'Authorization Violation'\r\n"), refused);
    let message = Message {
        subject: "gwfed.dns.U".into(),
        subscription: 9,
        payload: b"hello\r\nworld".to_vec(),
        ..Message::default()
    };
    assert_eq!(whole("MSG gwfed.dns.U 9 12\r\nhello\r\nworld\r\n"), Incoming::Message(message.clone()));
    let with_reply = Message { reply_to: Some("_INBOX.1".into()), ..message.clone() };
    assert_eq!(whole("MSG gwfed.dns.U 9 _INBOX.1 12\r\nhello\r\nworld\r\n"), Incoming::Message(with_reply));
    let missing = Message { status: Some(404), payload: Vec::new(), ..message.clone() };
    let text = "HMSG gwfed.dns.U 9 30 30\r\nNATS/1.0 404 Message Gone\r\n\r\n \r\n";
    assert_eq!(whole(text), Incoming::Message(missing));
    let with_headers = Message { payload: b"x".to_vec(), ..message };
    let text = "HMSG gwfed.dns.U 9 12 13\r\nNATS/1.0\r\n\r\nx\r\n";
    assert_eq!(whole(text), Incoming::Message(with_headers));
}

#[test]
fn damaged_and_unlimited_operations_are_refused() {
    for (text, error) in [
        ("HELLO\r\n", WireError::Line),
        ("INFO {\r\n", WireError::Line),
        ("MSG a 1 x\r\n", WireError::Line),
        ("MSG a b 1 2 3\r\n", WireError::Line),
        ("HMSG a 1 9 4\r\n", WireError::Line),
        ("MSG a 1 1\r\nxyz", WireError::End),
        ("MSG a 1 1048577\r\n", WireError::LongMessage(1_048_577)),
    ] {
        assert_eq!(parse(text.as_bytes(), MAX), Err(error), "{text:?}");
    }
    assert_eq!(parse(&vec![b'x'; MAX_LINE_BYTES + 1], MAX), Err(WireError::LongLine));
}

#[test]
fn a_nonce_cannot_be_a_message_of_the_federation() {
    use crate::federation::message::{Purpose, signed_bytes};
    assert!(is_nonce("zY3kq-_LJ1hT8A0") && !is_nonce("short") && !is_nonce(&"x".repeat(129)));
    for purpose in Purpose::ALL {
        let signed = signed_bytes(*purpose, &["x"]);
        assert!(!is_nonce(std::str::from_utf8(&signed).unwrap()));
    }
}

#[test]
fn secrets_are_only_in_the_sign_in() {
    let of = |sign_in| String::from_utf8(connect("gw", "1", true, &sign_in)).unwrap();
    let text = of(SignIn::Password { user: "gw".into(), password: "s3cret".into() });
    assert!(text.contains(r#""user":"gw","pass":"s3cret""#) && text.ends_with("}\r\nPING\r\n"), "{text}");
    assert!(of(SignIn::Token("t0ken".into())).contains(r#""auth_token":"t0ken""#));
    assert!(!of(SignIn::None).contains("auth_token"));
}

proptest! {
    /// A message of a client has the form that this reads when a server hands it on, in any pieces.
    #[test]
    fn messages_are_read_once_they_are_whole(
        payload in proptest::collection::vec(any::<u8>(), 0..200),
        reply_to in "[a-z]{1,8}",
        cut in any::<prop::sample::Index>(),
    ) {
        let sent = publish("a.b", &reply_to, &payload);
        let received = [b"MSG a.b 7", &sent["PUB a.b".len()..]].concat();
        let cut = cut.index(received.len());
        prop_assert_eq!(parse(&received[..cut], MAX), Ok(None));
        let (incoming, length) = parse(&received, MAX).unwrap().unwrap();
        prop_assert_eq!(length, received.len());
        let message = Message {
            subject: "a.b".into(), subscription: 7, reply_to: Some(reply_to), status: None, payload,
        };
        prop_assert_eq!(incoming, Incoming::Message(message));
    }

    #[test]
    fn any_bytes_are_read_or_refused(bytes in proptest::collection::vec(any::<u8>(), 0..200)) {
        if let Ok(Some((_, length))) = parse(&bytes, MAX) {
            prop_assert!(length <= bytes.len());
        }
    }
}
