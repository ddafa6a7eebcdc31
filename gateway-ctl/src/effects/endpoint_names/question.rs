//! Just enough of the messages of DNS (RFC 1035) to ask for an address and to read the answer. Pure.

use std::net::IpAddr;

pub const A: u16 = 1;
pub const NS: u16 = 2;
pub const AAAA: u16 = 28;
const INTERNET: u16 = 1;
const HEADER: usize = 12;

/// A question; the empty name is the root's. A label that is too long is cut off, so that no name makes this fail.
pub fn encode(id: [u8; 2], name: &str, kind: u16) -> Vec<u8> {
    // Recursion is desired; one question.
    let mut message = vec![id[0], id[1], 0x01, 0x00, 0, 1, 0, 0, 0, 0, 0, 0];
    for label in name.split('.').filter(|label| !label.is_empty()) {
        let label = &label.as_bytes()[..label.len().min(63)];
        message.push(label.len() as u8);
        message.extend(label);
    }
    message.push(0);
    message.extend(kind.to_be_bytes());
    message.extend(INTERNET.to_be_bytes());
    message
}

/// Whether this is an answer to the question of this id, whatever it says.
pub fn answers(id: [u8; 2], message: &[u8]) -> bool {
    message.len() >= HEADER && message[..2] == id && message[2] & 0x80 != 0
}

/// The addresses of a type in an answer. `None`: it is no answer to the question, or refuses it.
pub fn addresses(question: &[u8], kind: u16, message: &[u8]) -> Option<Vec<IpAddr>> {
    let id = question.first_chunk::<2>()?;
    let asked = question.get(HEADER..)?;
    let no_error = message.get(3)? & 0x0f == 0;
    let same = message.get(HEADER..)?.get(..asked.len())?.eq_ignore_ascii_case(asked);
    if !answers(*id, message) || !no_error || !same {
        return None;
    }
    let count = u16::from_be_bytes(*message.get(6..8)?.first_chunk()?);
    let mut at = HEADER + asked.len();
    let mut found = Vec::new();
    for _ in 0..count {
        at = skip_name(message, at)?;
        let fixed = message.get(at..at + 10)?;
        let (of, class) =
            (u16::from_be_bytes([fixed[0], fixed[1]]), u16::from_be_bytes([fixed[2], fixed[3]]));
        let length = usize::from(u16::from_be_bytes([fixed[8], fixed[9]]));
        let data = message.get(at + 10..at + 10 + length)?;
        at += 10 + length;
        // What a CNAME leads to stands in the same answer.
        if (of, class) == (kind, INTERNET) {
            match (kind, data.len()) {
                (A, 4) => found.push(IpAddr::from(*data.first_chunk::<4>()?)),
                (AAAA, 16) => found.push(IpAddr::from(*data.first_chunk::<16>()?)),
                _ => return None,
            }
        }
    }
    Some(found)
}

/// The place behind a name. Pointers end it.
fn skip_name(message: &[u8], mut at: usize) -> Option<usize> {
    loop {
        match *message.get(at)? {
            0 => return Some(at + 1),
            pointer if pointer & 0xc0 == 0xc0 => return Some(at + 2),
            length if length & 0xc0 == 0 => at += 1 + usize::from(length),
            _ => return None,
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn answer(question: &[u8], code: u8, records: &[(u16, &[u8])]) -> Vec<u8> {
        let mut message = question.to_vec();
        message[2] |= 0x80;
        message[3] = code;
        message[7] = records.len() as u8;
        for (kind, data) in records {
            message.extend([0xc0, 12]);
            message.extend(kind.to_be_bytes());
            message.extend([0, 1, 0, 0, 0, 60]);
            message.extend((data.len() as u16).to_be_bytes());
            message.extend(*data);
        }
        message
    }

    #[test]
    fn an_answer_gives_the_addresses_behind_its_aliases() {
        let question = encode([0x12, 0x34], "vpn.example", A);
        assert_eq!(&question[12..], b"\x03vpn\x07example\x00\x00\x01\x00\x01");
        let alias = b"\x01x\xc0\x10";
        let good = answer(&question, 0, &[(5, alias), (A, &[192, 0, 2, 1]), (A, &[192, 0, 2, 2])]);
        let found = addresses(&question, A, &good);
        assert_eq!(found, Some(vec![[192, 0, 2, 1].into(), [192, 0, 2, 2].into()]));
        assert_eq!(addresses(&question, A, &answer(&question, 0, &[])), Some(vec![]));
        assert_eq!(addresses(&question, A, &answer(&question, 3, &[])), None, "there is no such name");
        let other = encode([0x12, 0x35], "vpn.example", A);
        assert_eq!(addresses(&other, A, &good), None, "another id");
        assert_eq!(addresses(&encode([0x12, 0x34], "vpn.example.net", A), A, &good), None, "another name");
        assert_eq!(addresses(&question, A, &question), None, "a question is no answer");
        let six = encode([1, 2], "vpn.example", AAAA);
        let found = addresses(&six, AAAA, &answer(&six, 0, &[(AAAA, &[0x20; 16])]));
        assert_eq!(found, Some(vec![[0x20; 16].into()]));
    }

    proptest! {
        #[test]
        fn no_bytes_make_it_panic(
            bytes in prop::collection::vec(any::<u8>(), 0..300), cut in 0usize..80, place in 0usize..80, byte in any::<u8>(),
        ) {
            let question = encode([1, 2], "vpn.example", A);
            addresses(&question, A, &bytes);
            let mut good = answer(&question, 0, &[(5, b"\x01x\xc0\x10"), (A, &[192, 0, 2, 1])]);
            let at = place.min(good.len() - 1);
            good[at] = byte;
            good.truncate(cut.max(1));
            addresses(&question, A, &good);
            addresses(&bytes, A, &good);
        }
    }
}
