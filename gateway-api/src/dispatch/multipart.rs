//! `multipart/form-data` (RFC 7578): fields of a form, with a file as the text of one field. Pure functions.

use std::convert::Infallible;

use bytes::Bytes;
use futures_util::{FutureExt, stream};
use multer::{Error, Field, Multipart};
use serde_json::{Map, Value};

/// Maximum number of fields in a form.
const MAX_PARTS: usize = 16;
/// Maximum length of a boundary (RFC 2046 §5.1.1).
const MAX_BOUNDARY_LENGTH: usize = 70;

/// Returns the boundary of a `Content-Type`.
pub(super) fn boundary(content_type: &str) -> Option<String> {
    let boundary = multer::parse_boundary(content_type).ok()?;
    (1..=MAX_BOUNDARY_LENGTH).contains(&boundary.len()).then_some(boundary)
}

/// Returns the fields of a complete form by name. A file is the field `file_field`, whatever its name in the form. The
/// caller limits the size of the form.
pub(super) fn fields(
    bytes: Bytes,
    boundary: String,
    file_field: &str,
) -> Result<Map<String, Value>, &'static str> {
    let form = Multipart::new(stream::iter([Ok::<_, Infallible>(bytes)]), boundary);
    // The parser only waits for missing bytes.
    read(form, file_field).now_or_never().unwrap_or(Err("the form does not end"))
}

/// Returns the text of a file. Files that are not UTF-8 are read as Latin-1, which older editors write: that changes
/// nothing but letters in comments and names.
pub(super) fn file_text(bytes: &[u8]) -> String {
    match std::str::from_utf8(bytes) {
        Ok(text) => text.to_owned(),
        Err(_) => bytes.iter().map(|byte| char::from(*byte)).collect(),
    }
}

async fn read(mut form: Multipart<'_>, file_field: &str) -> Result<Map<String, Value>, &'static str> {
    let mut fields = Map::new();
    while let Some(field) = form.next_field().await.map_err(|error| problem(&error))? {
        if fields.len() == MAX_PARTS {
            return Err("the form has too many fields");
        }
        let name = name(&field, file_field).ok_or("a field of the form has no name")?;
        let content = field.bytes().await.map_err(|error| problem(&error))?;
        // Not `Field::text`, which replaces invalid UTF-8.
        let content = match std::str::from_utf8(&content) {
            Ok(text) => text.to_owned(),
            Err(_) if name == file_field => file_text(&content),
            Err(_) => return Err("a field of the form is not UTF-8"),
        };
        if fields.insert(name, content.into()).is_some() {
            return Err("a field of the form is given twice");
        }
    }
    Ok(fields)
}

fn name(field: &Field<'_>, file_field: &str) -> Option<String> {
    match field.file_name() {
        Some(_) => Some(file_field.to_owned()),
        None => field.name().filter(|name| !name.is_empty()).map(str::to_owned),
    }
}

/// Returns a fixed text for an error. The text of the parser may quote the form at any length.
fn problem(error: &Error) -> &'static str {
    match error {
        Error::IncompleteStream | Error::IncompleteFieldData { .. } => "the form is incomplete",
        Error::IncompleteHeaders
        | Error::ReadHeaderFailed(_)
        | Error::DecodeHeaderName { .. }
        | Error::DecodeHeaderValue { .. } => "the head of a field is malformed",
        _ => "the form is malformed",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const FORM: &str = "preamble\r\n--x\r\nContent-Disposition: form-data; name=\"name\"\r\n\r\nhome\r\n--x\r\n\
                        content-disposition: form-data; name=\"upload\"; filename=\"a;b.ovpn\"\r\n\
                        Content-Type: text/plain\r\n\r\nclient\r\nremote y\r\n\r\n--x--\r\n";

    fn fields_of(form: impl Into<Vec<u8>>) -> Result<Map<String, Value>, &'static str> {
        fields(Bytes::from(form.into()), "x".to_owned(), "config")
    }

    fn field(disposition: &str, content: &str) -> String {
        format!("--x\r\nContent-Disposition: form-data{disposition}\r\n\r\n{content}\r\n")
    }

    #[test]
    fn a_file_becomes_the_field_it_is_for() {
        let fields = fields_of(FORM).expect("a form");
        assert_eq!(fields["name"], "home");
        assert_eq!(fields["config"], "client\r\nremote y\r\n");
        assert_eq!(fields.len(), 2);
    }

    #[test]
    fn boundaries_are_found() {
        let found = |content_type: &str| boundary(content_type);
        assert_eq!(found("multipart/form-data; boundary=abC").as_deref(), Some("abC"));
        assert_eq!(found("Multipart/Form-Data;boundary=----x1").as_deref(), Some("----x1"));
        assert_eq!(found("multipart/form-data; charset=x; Boundary=\"a B\"").as_deref(), Some("a B"));
        assert_eq!(found("multipart/form-data"), None);
        assert_eq!(found("multipart/form-data; boundary="), None);
        assert_eq!(found("multipart/form-data; boundary=\"\""), None);
        let of_length =
            |length: usize| found(&format!("multipart/form-data; boundary={}", "b".repeat(length)));
        assert_eq!(of_length(70), Some("b".repeat(70)));
        assert_eq!(of_length(71), None);
    }

    #[test]
    fn a_broken_form_is_refused_wherever_it_breaks_off() {
        let whole = FORM.trim_end();
        for end in 0..whole.len() - 2 {
            assert!(fields_of(&whole.as_bytes()[..end]).is_err(), "{}", &whole[..end]);
        }
        let twice = field("; name=a", "1") + &field("; name=a", "2") + "--x--";
        assert_eq!(fields_of(twice), Err("a field of the form is given twice"));
    }

    #[test]
    fn fields_without_a_name_or_text_are_refused() {
        for disposition in ["", "; name=\"\"", "; title=a"] {
            let form = field(disposition, "1") + "--x--";
            assert_eq!(fields_of(form), Err("a field of the form has no name"), "{disposition}");
        }
        assert_eq!(fields_of("--x\r\n\r\n1\r\n\r\n--x--"), Err("a field of the form has no name"));
        assert_eq!(fields_of("--x\r\nno header\r\n\r\n1\r\n--x--"), Err("the head of a field is malformed"));
        let mut form = field("; name=a", "?").into_bytes();
        let end = form.len() - "?\r\n".len();
        form[end] = 0xff;
        form.extend_from_slice(b"--x--");
        assert_eq!(fields_of(form), Err("a field of the form is not UTF-8"));
        // A file may be of an older editor.
        let mut form = field("; name=a; filename=x.conf", "# B?ro").into_bytes();
        let at = form.iter().rposition(|byte| *byte == b'?').expect("the letter");
        form[at] = 0xfc;
        form.extend_from_slice(b"--x--");
        let fields = fields_of(form).expect("a form");
        assert!(fields.values().any(|text| text == "# Büro"), "{fields:?}");
    }

    #[test]
    fn a_form_has_a_bounded_number_of_fields() {
        let form = |count: usize| {
            let fields: String = (0..count).map(|index| field(&format!("; name=f{index}"), "")).collect();
            fields + "--x--"
        };
        assert_eq!(fields_of(form(MAX_PARTS)).map(|fields| fields.len()), Ok(MAX_PARTS));
        assert_eq!(fields_of(form(MAX_PARTS + 1)), Err("the form has too many fields"));
    }
}
