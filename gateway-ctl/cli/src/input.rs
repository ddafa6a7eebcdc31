//! JSON body: a literal, a file or standard input. It is validated here to find mistakes early, and sent unchanged.

use std::io::{IsTerminal, Read};
use std::path::Path;

use serde_json::Value;

use crate::failure::Failure;
use crate::grammar::{Operand, ParameterKind};

/// Maximum size of a body in bytes. The daemon refuses larger ones; the limit keeps a wrong file out of memory.
const LIMIT: u64 = 64 * 1024 * 1024;

/// Returns a body that is valid JSON, as the user wrote it: numbers keep their digits, and keys their order.
pub(crate) fn body(operand: &Operand, given: Option<&str>) -> Result<String, Failure> {
    let (source, text) = match (operand.what, given) {
        (ParameterKind::File, Some(path)) => (path.to_owned(), read_file(path)?),
        (_, Some("-")) => standard_input()?,
        (_, Some(text)) if is_literal(text) => (operand.name.to_owned(), text.to_owned()),
        (_, Some(path)) => (path.to_owned(), read_file(path)?),
        (_, None) if std::io::stdin().is_terminal() => {
            return Err(Failure::usage(format!("{} is missing", operand.name))
                .advise("Give the JSON itself in quotes, a file, or pipe it in; - is standard input."));
        }
        (_, None) => standard_input()?,
    };
    check(&source, &text)?;
    Ok(text)
}

fn is_literal(text: &str) -> bool {
    text.trim_start().starts_with(['{', '['])
}

fn standard_input() -> Result<(String, String), Failure> {
    let mut bytes = Vec::new();
    let read = std::io::stdin().lock().take(LIMIT + 1).read_to_end(&mut bytes);
    read.map_err(|error| Failure::usage(format!("standard input cannot be read: {error}")))?;
    let text = decode("standard input", bytes)?;
    Ok(("standard input".to_owned(), text))
}

fn read_file(path: &str) -> Result<String, Failure> {
    if path == "-" {
        return Err(Failure::usage("the file must be named; - is not one")
            .advise("For standard input write /dev/stdin."));
    }
    let failed = |error: std::io::Error| match error.kind() {
        std::io::ErrorKind::NotFound => Failure::usage(format!("{path} is no file, and no JSON either"))
            .advise("JSON begins with { or [; quote it, so that the shell leaves it alone."),
        _ => Failure::usage(format!("{path} cannot be read: {error}")),
    };
    let mut bytes = Vec::new();
    let file = std::fs::File::open(Path::new(path)).map_err(failed)?;
    file.take(LIMIT + 1).read_to_end(&mut bytes).map_err(failed)?;
    decode(path, bytes)
}

fn decode(source: &str, bytes: Vec<u8>) -> Result<String, Failure> {
    if bytes.len() as u64 > LIMIT {
        return Err(Failure::usage(format!("{source} is larger than {} MiB", LIMIT >> 20)));
    }
    let text = String::from_utf8(bytes).map_err(|error| {
        Failure::usage(format!("{source} is not UTF-8: byte {}", error.utf8_error().valid_up_to() + 1))
    })?;
    // Editors on other systems write a byte order mark.
    Ok(text.strip_prefix('\u{feff}').map(str::to_owned).unwrap_or(text))
}

fn check(source: &str, text: &str) -> Result<(), Failure> {
    if text.trim().is_empty() {
        return Err(Failure::usage(format!("{source} is empty"))
            .advise("Give the JSON itself in quotes, a file, or pipe it in."));
    }
    let Err(error) = serde_json::from_str::<Value>(text) else { return Ok(()) };
    // The position comes before the message, where editors look for it.
    let message = error.to_string();
    let message = message.split(" at line ").next().unwrap_or_default();
    Err(Failure::usage(format!("{source}:{}:{}: not valid JSON: {message}", error.line(), error.column())))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::grammar::Arity;

    const JSON: Operand = Operand { name: "json", what: ParameterKind::Json, arity: Arity::Optional };
    const FILE: Operand = Operand { name: "file", what: ParameterKind::File, arity: Arity::One };

    #[test]
    fn a_literal_is_sent_as_it_is_written() {
        let literal = " {\"b\": 1.10, \"a\": 18446744073709551616}";
        assert_eq!(body(&JSON, Some(literal)).unwrap(), literal);
        assert_eq!(body(&JSON, Some("[]")).unwrap(), "[]");
    }

    #[test]
    fn a_mistake_has_a_line_and_a_column() {
        let text = body(&JSON, Some("{\"a\": 1,\n \"b\" 2}")).unwrap_err().text();
        assert_eq!(text, "error: json:2:6: not valid JSON: expected `:`\n");
        let text = body(&JSON, Some("{\"a\": 1")).unwrap_err().text();
        assert!(text.starts_with("error: json:1:7: not valid JSON: EOF"), "{text}");
    }

    #[test]
    fn a_file_is_read_and_named_in_mistakes() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("device.json");
        std::fs::write(&path, "\u{feff}{\"name\":\"x\"}").unwrap();
        assert_eq!(body(&JSON, path.to_str()).unwrap(), "{\"name\":\"x\"}");
        std::fs::write(&path, "{,}").unwrap();
        let text = body(&FILE, path.to_str()).unwrap_err().text();
        assert!(text.contains("device.json:1:2: not valid JSON"), "{text}");
        std::fs::write(&path, [b'{', 0xff]).unwrap();
        assert!(body(&JSON, path.to_str()).unwrap_err().text().contains("not UTF-8: byte 2"));
    }

    #[test]
    fn a_missing_file_and_invalid_json_have_different_errors() {
        let text = body(&JSON, Some("name=x")).unwrap_err().text();
        assert!(text.contains("no file, and no JSON either"), "{text}");
        assert!(body(&FILE, Some("-")).unwrap_err().text().contains("/dev/stdin"));
    }
}
