//! Names in the text of lists.

use std::borrow::Cow;

use gateway_model::domain::DomainName;

use crate::dns::name::{MAX, Name, NameRef};

/// Name parsed from text: borrowed from the caller's buffer, or owned if it is internationalized.
pub(super) enum Text<'a> {
    Plain(NameRef<'a>),
    International(Name),
}

impl Text<'_> {
    pub(super) fn as_ref(&self) -> NameRef<'_> {
        match self {
            Text::Plain(name) => *name,
            Text::International(name) => name.as_ref(),
        }
    }
}

/// Parses a name without an allocation. It accepts every name that DNS can encode, not only host names.
pub(super) fn read<'a>(text: &[u8], buffer: &'a mut [u8; MAX]) -> Result<Text<'a>, Cow<'static, str>> {
    let text = text.strip_suffix(b".").unwrap_or(text);
    if text.len() > MAX - 2 || text.is_empty() {
        return if text.is_ascii() {
            Err(Cow::Borrowed("a name has 1 to 253 characters"))
        } else {
            international(text)
        };
    }
    let (mut length_at, mut at, mut numeric) = (0, 1, true);
    for byte in text {
        let byte = byte.to_ascii_lowercase();
        match byte {
            b'.' => {
                end_label(buffer, length_at, at)?;
                (length_at, numeric) = (at, true);
            }
            b'a'..=b'z' | b'-' | b'_' => {
                buffer[at] = byte;
                numeric = false;
            }
            b'0'..=b'9' => buffer[at] = byte,
            0x80.. => return international(text),
            _ => {
                return Err(Cow::Borrowed(
                    "not a name: it has other characters than letters, digits, - and _",
                ));
            }
        }
        at += 1;
    }
    end_label(buffer, length_at, at)?;
    if numeric {
        return Err(Cow::Borrowed("not a name: its last part is a number"));
    }
    buffer[at] = 0;
    NameRef::new(&buffer[..=at]).map(Text::Plain).ok_or(Cow::Borrowed("not a name"))
}

fn end_label(buffer: &mut [u8; MAX], length_at: usize, at: usize) -> Result<(), Cow<'static, str>> {
    match at - length_at - 1 {
        0 => Err(Cow::Borrowed("not a name: a part of it is empty")),
        length @ 1..=63 => {
            // At most 63.
            buffer[length_at] = length as u8;
            Ok(())
        }
        _ => Err(Cow::Borrowed("not a name: a part of it has more than 63 characters")),
    }
}

fn international<'a>(text: &[u8]) -> Result<Text<'a>, Cow<'static, str>> {
    let text = std::str::from_utf8(text).map_err(|_| Cow::Borrowed("not a name: it is not UTF-8"))?;
    match DomainName::parse(text) {
        Ok(name) => Ok(Text::International(Name::from(&name))),
        Err(error) => Err(format!("not a name: {error}").into()),
    }
}
