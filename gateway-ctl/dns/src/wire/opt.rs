//! OPT pseudo-record of EDNS (RFC 6891) in queries. Options that are not listed here are not forwarded, so a client
//! subnet (RFC 7871) is not either.

use super::u16_at;

pub(crate) const KEEPALIVE: u16 = 11;
const PADDING: u16 = 12;

/// OPT record of a client.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Opt {
    /// UDP payload size that the client accepts.
    pub payload: u16,
    pub version: u8,
    pub dnssec_ok: bool,
    /// The client padded, so it wants padding (RFC 8467).
    pub padding: bool,
    /// The client keeps connections open (RFC 7828).
    pub keepalive: bool,
}

impl Opt {
    /// Reads the OPT record from class, TTL and data; `None` if its options exceed the data.
    pub fn read(class: u16, ttl: u32, rdata: &[u8]) -> Option<Opt> {
        let [_, version, flags, _] = ttl.to_be_bytes();
        let mut opt = Opt { payload: class, version, dnssec_ok: flags & 0x80 != 0, ..Opt::default() };
        for option in options(rdata) {
            match option?.0 {
                KEEPALIVE => opt.keepalive = true,
                PADDING => opt.padding = true,
                _ => {}
            }
        }
        Some(opt)
    }
}

/// Code and data of each option. `None` for an option that does not fit.
pub(crate) fn options(rdata: &[u8]) -> impl Iterator<Item = Option<(u16, &[u8])>> {
    let mut at = 0;
    std::iter::from_fn(move || {
        if at >= rdata.len() {
            return None;
        }
        let option = u16_at(rdata, at).zip(u16_at(rdata, at + 2)).and_then(|(code, length)| {
            rdata.get(at + 4..at + 4 + usize::from(length)).map(|data| (code, data))
        });
        at = option.map_or(rdata.len(), |(_, data)| at + 4 + data.len());
        Some(option)
    })
}

/// The extended error of an OPT record, the first of them: code and text.
pub(crate) fn extended_error(rdata: &[u8]) -> Option<(u16, String)> {
    let (_, data) = options(rdata).flatten().find(|(code, _)| *code == EDE)?;
    Some((u16_at(data, 0)?, String::from_utf8_lossy(&data[2..]).into_owned()))
}

pub(crate) const EDE: u16 = 15;

/// An extended error (RFC 8914).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Ede<'a> {
    pub code: u16,
    pub text: &'a str,
}

/// OPT record of replies.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ReplyOpt<'a> {
    pub rcode: u16,
    pub dnssec_ok: bool,
    pub ede: Option<Ede<'a>>,
    /// Idle timeout of connections in units of 100 ms.
    pub keepalive: Option<u16>,
    /// The whole message is filled up to a multiple of this.
    pub padding: Option<usize>,
}

/// Longest text of an extended error that is written.
const TEXT: usize = 128;

impl ReplyOpt<'_> {
    pub(crate) fn write(&self, out: &mut Vec<u8>) {
        let [high, _] = (self.rcode >> 4).to_be_bytes();
        debug_assert_eq!(high, 0, "response codes have twelve bits");
        out.extend_from_slice(&[0, 0, 41]);
        out.extend_from_slice(&(super::PAYLOAD as u16).to_be_bytes());
        out.extend_from_slice(&[(self.rcode >> 4) as u8, 0, if self.dnssec_ok { 0x80 } else { 0 }, 0]);
        let length_at = out.len();
        out.extend_from_slice(&[0, 0]);
        if let Some(ede) = self.ede {
            let text = cut(ede.text, TEXT);
            out.extend_from_slice(&EDE.to_be_bytes());
            out.extend_from_slice(&(2 + text.len() as u16).to_be_bytes());
            out.extend_from_slice(&ede.code.to_be_bytes());
            out.extend_from_slice(text.as_bytes());
        }
        if let Some(tenths) = self.keepalive {
            out.extend_from_slice(&[0, KEEPALIVE as u8, 0, 2]);
            out.extend_from_slice(&tenths.to_be_bytes());
        }
        if let Some(block) = self.padding {
            let length = (out.len() + 4).next_multiple_of(block) - out.len() - 4;
            out.extend_from_slice(&[0, PADDING as u8]);
            out.extend_from_slice(&(length as u16).to_be_bytes());
            out.resize(out.len() + length, 0);
        }
        let length = (out.len() - length_at - 2) as u16;
        out[length_at..length_at + 2].copy_from_slice(&length.to_be_bytes());
    }
}

fn cut(text: &str, length: usize) -> &str {
    &text[..text.floor_char_boundary(length)]
}
