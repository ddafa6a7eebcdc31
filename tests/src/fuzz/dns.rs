//! A DNS message, as a query and as a response to its own query.

use gateway_common::dns_filter::{Plain, read_query};
use gateway_common::wire::{FilterQuery, MESSAGE_ID, NameKey, QUESTION};
use gateway_core::dns::Question;
use gateway_dns::upstream::message::{
    QueryEncoding, UpstreamQuery, Verdict, check_reply, limit_life, shortest_life, unmix,
};
use gateway_dns::wire::stored::{AnswerAge, Bounds};
use gateway_dns::wire::{Answer, Ede, Envelope, HEADER, NameBuf, Records, Request, StoredAnswer};

/// Checks that a parsed message can be answered, that an answer can be parsed, and that no length exceeds its limit.
pub fn dns(data: &[u8]) {
    if let Ok(request) = Request::read(data) {
        let mut out = Vec::new();
        let envelope = Envelope { limit: request.payload(), ..Envelope::default() };
        let address = std::net::Ipv4Addr::UNSPECIFIED.into();
        type Compose = fn(&Envelope<'_>, &mut Vec<u8>, &Request<'_>, std::net::IpAddr);
        let answers: [Compose; 4] = [
            |envelope, out, request, _| envelope.empty(out, request),
            |envelope, out, request, address| envelope.addresses(out, request, &[address], 10),
            |envelope, out, request, _| envelope.negative(out, request, 10),
            |envelope, out, request, _| envelope.any(out, request),
        ];
        for answer in answers {
            answer(&envelope.with(3, Some(Ede { code: 15, text: "blocklist" })), &mut out, &request, address);
            sound(&out, &request);
        }
    }
    answered(data);
    check_any_reply(data);
    read_in_the_kernel(data);
}

/// Checks that the kernel reads a query only if the resolver does, and as the resolver does.
fn read_in_the_kernel(data: &[u8]) {
    let Some(asked) = data.get(MESSAGE_ID..).filter(|asked| asked.len() <= QUESTION) else { return };
    let (mut query, key) = (FilterQuery::EMPTY, NameKey::new(7));
    query.question[..asked.len()].copy_from_slice(asked);
    if !read_query::<Plain>(&mut query, asked.len() as u32, &key) {
        return;
    }
    let request = Request::read(data).expect("a query");
    assert_eq!((request.qclass, request.flags & !0x0130), (1, 0), "a plain query");
    assert_eq!(query.question_end as usize + MESSAGE_ID, HEADER + request.question.len());
    let suffixes: Vec<_> = request.name().suffixes().filter(|name| !name.is_root()).collect();
    assert_eq!(query.labels as usize, suffixes.len());
    for (hash, name) in query.suffixes.iter().zip(suffixes.iter().rev()) {
        assert_eq!(*hash, key.hash(name.wire()), "{name}");
    }
    let edns = request.opt.map_or(0, |opt| if opt.dnssec_ok { 2 } else { 1 });
    assert!(request.opt.is_none_or(|opt| opt.version == 0 && !opt.keepalive && !opt.padding));
    assert_eq!(query.variant % 3, edns);
}

fn sound(message: &[u8], request: &Request<'_>) {
    assert!(message.len() <= request.payload(), "{} bytes are too many", message.len());
    assert_eq!(
        &message[HEADER..HEADER + request.question.len()],
        request.question,
        "the question comes back"
    );
    let records = Records::of(message).expect("a header").map(|record| record.expect("whole").rdata.end);
    let end = records.last().unwrap_or(HEADER + request.question.len());
    assert_eq!(end, message.len(), "nothing stands behind the records");
}

fn answered(data: &[u8]) {
    let Some((name, end)) = NameBuf::read(data, HEADER) else { return };
    let (Some(name), Some(qtype)) = (name.as_ref(), data.get(end..end + 2)) else { return };
    let asked = Question { name, qtype: u16::from_be_bytes([qtype[0], qtype[1]]) };
    let bounds = Bounds { least: 0, most: 86_400, most_negative: 3600 };
    let Ok(answer) = Answer::read(data, asked, data.len().is_multiple_of(2)) else { return };
    let Some(stored) = StoredAnswer::new(asked, &answer, bounds) else { return };
    assert_eq!(stored.counts()[0] as usize, answer.answers.len(), "every record is kept");
    let [answers, authorities] = stored.unpack(AnswerAge::Fresh(0));
    assert_eq!((answers.len(), authorities.len()), (answer.answers.len(), answer.authorities.len()));
    let mut question = vec![0, 1, 1, 0, 0, 1, 0, 0, 0, 0, 0, 0];
    question.extend_from_slice(name.wire());
    question.extend_from_slice(qtype);
    question.extend_from_slice(&[0, 1]);
    let request = Request::read(&question).expect("a question");
    let mut out = Vec::new();
    let envelope = Envelope { limit: request.payload(), ..Envelope::default() };
    envelope.stored(&mut out, &request, &stored, AnswerAge::Fresh(7));
    sound(&out, &request);
    envelope.records(&mut out, &request, [&answers, &authorities, &[]]);
    sound(&out, &request);
}

/// Checks an upstream's message against the query that it repeats.
fn check_any_reply(data: &[u8]) {
    let Some((name, end)) = NameBuf::read(data, HEADER) else { return };
    let (Some(name), Some(qtype), Some(id)) = (name.to_name(), data.get(end..end + 2), data.get(..2)) else {
        return;
    };
    let asked = UpstreamQuery {
        name,
        qtype: u16::from_be_bytes([qtype[0], qtype[1]]),
        recursion: true,
        dnssec_ok: true,
        checking_disabled: false,
    };
    let form =
        QueryEncoding { id: u16::from_be_bytes([id[0], id[1]]), edns: true, ..QueryEncoding::default() };
    let sent = asked.message(&form);
    let mut message = data.to_vec();
    unmix(&mut message);
    if let Verdict::Fits(head) = check_reply(&message, &sent) {
        let whole = Records::of(&message).is_some_and(|mut records| records.all(|record| record.is_ok()));
        assert!(whole || head.truncated, "a part of an answer is taken for all of it");
        limit_life(&mut message, 7);
        assert!(shortest_life(&message).is_none_or(|life| life.as_secs() <= 7));
        assert!(
            matches!(check_reply(&message, &sent), Verdict::Fits(_)),
            "its life does not make it another one"
        );
        message[0] ^= 1;
        assert_eq!(
            check_reply(&message, &sent),
            Verdict::Stranger,
            "an answer to another question is believed"
        );
    }
}
