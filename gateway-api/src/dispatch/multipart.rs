//! `multipart/form-data` (RFC 7578): the fields of a form, a file as the text of one of them. Pure.

use serde_json::{Map, Value};

/// A form has few fields.
const MAX_PARTS: usize = 16;

/// The boundary of a `Content-Type`.
pub fn boundary(content_type: &str) -> Option<&str> {
    let parameters = content_type.split(';').skip(1).map(str::trim);
    let value = parameters.into_iter().find_map(|parameter| {
        let (name, value) = parameter.split_once('=')?;
        name.trim().eq_ignore_ascii_case("boundary").then(|| value.trim().trim_matches('"'))
    })?;
    (1..=70).contains(&value.len()).then_some(value)
}

/// Its fields by name. A file is the field `file_field`, whatever the form calls it.
pub fn fields(bytes: &[u8], boundary: &str, file_field: &str) -> Result<Map<String, Value>, &'static str> {
    let delimiter = [b"--", boundary.as_bytes()].concat();
    let mut rest = match bytes.strip_prefix(delimiter.as_slice()) {
        Some(rest) => rest,
        // A preamble may come first.
        None => after(bytes, &[b"\r\n", delimiter.as_slice()].concat()).ok_or("the form does not begin")?.1,
    };
    let delimiter = [b"\r\n", delimiter.as_slice()].concat();
    let mut fields = Map::new();
    while !rest.starts_with(b"--") {
        if fields.len() == MAX_PARTS {
            return Err("the form has too many fields");
        }
        let (_, part) = after(rest, b"\r\n").ok_or("a field of the form does not begin")?;
        let (part, next) = after(part, &delimiter).ok_or("the form does not end")?;
        rest = next;
        let (head, content) = match part.strip_prefix(b"\r\n") {
            Some(content) => (&[][..], content),
            None => after(part, b"\r\n\r\n").ok_or("a field of the form has no end of its head")?,
        };
        let head = std::str::from_utf8(head).map_err(|_| "the head of a field is not UTF-8")?;
        let content = std::str::from_utf8(content).map_err(|_| "a field of the form is not UTF-8")?;
        let name = name(head, file_field).ok_or("a field of the form has no name")?;
        if fields.insert(name, content.into()).is_some() {
            return Err("a field of the form is given twice");
        }
    }
    Ok(fields)
}

/// What is before and what is behind the first place of `mark`.
fn after<'a>(bytes: &'a [u8], mark: &[u8]) -> Option<(&'a [u8], &'a [u8])> {
    let at = bytes.windows(mark.len()).position(|window| window == mark)?;
    Some((&bytes[..at], &bytes[at + mark.len()..]))
}

fn name(head: &str, file_field: &str) -> Option<String> {
    let disposition = head.split("\r\n").find_map(|line| {
        let (header, value) = line.split_once(':')?;
        header.trim().eq_ignore_ascii_case("content-disposition").then_some(value)
    })?;
    let parameter = |wanted: &str| {
        disposition.split(';').skip(1).find_map(|parameter| {
            let (name, value) = parameter.split_once('=')?;
            name.trim().eq_ignore_ascii_case(wanted).then(|| value.trim().trim_matches('"'))
        })
    };
    match parameter("filename") {
        Some(_) => Some(file_field.to_owned()),
        None => parameter("name").filter(|name| !name.is_empty()).map(str::to_owned),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const FORM: &str = "preamble\r\n--x\r\nContent-Disposition: form-data; name=\"name\"\r\n\r\nhome\r\n--x\r\n\
                        content-disposition: form-data; name=\"upload\"; filename=\"a;b.ovpn\"\r\n\
                        Content-Type: text/plain\r\n\r\nclient\r\nremote y\r\n\r\n--x--\r\n";

    #[test]
    fn a_file_becomes_the_field_it_is_for() {
        let fields = fields(FORM.as_bytes(), "x", "config").expect("a form");
        assert_eq!(fields["name"], "home");
        assert_eq!(fields["config"], "client\r\nremote y\r\n");
        assert_eq!(fields.len(), 2);
    }

    #[test]
    fn boundaries_are_found() {
        assert_eq!(boundary("multipart/form-data; boundary=abc"), Some("abc"));
        assert_eq!(boundary("multipart/form-data; charset=x; Boundary=\"a b\""), Some("a b"));
        assert_eq!(boundary("multipart/form-data"), None);
        assert_eq!(boundary("multipart/form-data; boundary="), None);
    }

    #[test]
    fn a_broken_form_is_refused_wherever_it_breaks_off() {
        let whole = FORM.trim_end();
        for end in 0..whole.len() - 2 {
            assert!(fields(&whole.as_bytes()[..end], "x", "config").is_err(), "{}", &whole[..end]);
        }
        let twice =
            FORM.replace("home\r\n", "home\r\n--x\r\nContent-Disposition: form-data; name=name\r\n\r\nx\r\n");
        assert!(fields(twice.as_bytes(), "x", "config").is_err());
    }
}
