//! Request for a command of the table: operands and flags in path and body.

use std::borrow::Cow;

use clap::ArgMatches;
use gateway_model::Id;
use serde_json::{Map, Value};

use crate::client::Client;
use crate::command_line::value;
use crate::failure::{Failure, Usage};
use crate::grammar::{Call, Command, Flag, Method, ParameterKind};
use crate::input;

/// Returns the path of a call and, for methods with a body, the body.
pub(crate) fn build(
    client: &Client,
    command: &Command,
    call: Call,
    arguments: &ArgMatches,
) -> Result<(String, Option<String>), Failure> {
    // Mistakes in the input are found before a request is sent.
    let is_query = call.method == Method::Get;
    let body = if is_query { None } else { body(command, call, arguments)? };
    let mut path = call.path.to_owned();
    for operand in &command.operands {
        let placeholder = format!("{{{}}}", operand.name);
        if let (true, Some(given)) = (path.contains(&placeholder), value(arguments, operand.name)) {
            let named = match operand.what {
                ParameterKind::Object(collection) => resolve(client, collection, given)?,
                _ => given.to_owned(),
            };
            path = path.replace(&placeholder, &segment(&named));
        }
    }
    if is_query {
        path.push_str(&query(client, command, call, arguments)?);
    }
    Ok((path, body))
}

/// Returns the operands that are not in the path, and the flags, as a query string.
fn query(client: &Client, command: &Command, call: Call, arguments: &ArgMatches) -> Result<String, Failure> {
    let mut pairs = Vec::new();
    for operand in &command.operands {
        if !call.path.contains(&format!("{{{}}}", operand.name))
            && let Some(given) = value(arguments, operand.name)
        {
            let named = match operand.what {
                ParameterKind::Object(collection) => resolve(client, collection, given)?,
                _ => given.to_owned(),
            };
            pairs.push(format!("{}={}", operand.name, segment(&named)));
        }
    }
    for flag in command.flags {
        if let Some(given) = value(arguments, flag.name) {
            pairs.push(format!("{}={}", flag.field, segment(given)));
        }
    }
    let first = if pairs.is_empty() { "" } else { "?" };
    Ok(format!("{first}{}", pairs.join("&")))
}

fn body(command: &Command, call: Call, arguments: &ArgMatches) -> Result<Option<String>, Failure> {
    if let Some(operand) = command.body() {
        return input::body(operand, value(arguments, operand.name)).map(Some);
    }
    let mut fields = Map::new();
    for operand in &command.operands {
        if !call.path.contains(&format!("{{{}}}", operand.name))
            && let Some(given) = value(arguments, operand.name)
        {
            fields.insert(operand.name.to_owned(), given.into());
        }
    }
    for flag in command.flags {
        if let Some(given) = value(arguments, flag.name) {
            fields.insert(flag.field.to_owned(), flag_value(flag, given));
        }
    }
    Ok((!fields.is_empty()).then(|| Value::Object(fields).to_string()))
}

fn flag_value(flag: &Flag, text: &str) -> Value {
    match text.parse::<u64>() {
        Ok(number) if flag.integer => number.into(),
        _ => text.into(),
    }
}

/// Returns the id of an object: ids are returned unchanged, names are looked up.
pub(crate) fn resolve(client: &Client, collection: &'static str, given: &str) -> Result<String, Failure> {
    if given.parse::<Id>().is_ok() {
        return Ok(given.to_owned());
    }
    // If the list fails, the request for the object fails too, with a better error.
    let Ok(answer) = client.get(collection) else { return Ok(given.to_owned()) };
    let objects = answer.data.as_array().map_or(&[][..], Vec::as_slice);
    match find(objects, given)? {
        Some(object) => Ok(identity(object).unwrap_or(given).to_owned()),
        None => Ok(given.to_owned()),
    }
}

/// Returns the object with this id, else the only one with this name.
pub(crate) fn find<'a>(objects: &'a [Value], given: &str) -> Result<Option<&'a Value>, Failure> {
    if let Some(object) = objects.iter().find(|object| identity(object) == Some(given)) {
        return Ok(Some(object));
    }
    let named: Vec<&Value> =
        objects.iter().filter(|object| object.get("name").and_then(Value::as_str) == Some(given)).collect();
    match named.as_slice() {
        [] => Ok(None),
        [one] => Ok(Some(one)),
        many => Err(Failure::Usage(Usage {
            message: format!("{} objects have the name {given:?}; say which one by its id", many.len()),
            advice: many.iter().filter_map(|object| identity(object)).map(str::to_owned).collect(),
        })),
    }
}

fn identity(object: &Value) -> Option<&str> {
    object.get("id").and_then(Value::as_str)
}

/// Encodes a value as one segment of a path.
pub(crate) fn segment(value: &str) -> Cow<'_, str> {
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'.' | b'_' | b'~');
    // A segment of dots alone would leave its parent.
    let climbs = matches!(value, "." | "..");
    if !climbs && value.bytes().all(plain) {
        return Cow::Borrowed(value);
    }
    let escaped = value.bytes().map(|byte| match byte {
        byte if plain(byte) && !climbs => char::from(byte).to_string(),
        byte => format!("%{byte:02X}"),
    });
    Cow::Owned(escaped.collect())
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_path_segment_cannot_escape() {
        assert_eq!(segment("wg-a"), "wg-a");
        assert_eq!(segment("a/b?c#d e%"), "a%2Fb%3Fc%23d%20e%25");
        assert_eq!(segment(".."), "%2E%2E");
        assert_eq!(segment("ü"), "%C3%BC");
    }

    #[test]
    fn a_name_that_two_objects_have_is_refused() {
        let objects =
            [json!({"id": "1", "name": "tv"}), json!({"id": "2", "name": "tv"}), json!({"id": "tv"})];
        assert_eq!(find(&objects, "tv").unwrap(), Some(&objects[2]));
        let text = find(&objects[..2], "tv").unwrap_err().text();
        assert!(text.contains("2 objects have the name") && text.contains("\n  1\n  2\n"), "{text}");
        assert_eq!(find(&objects, "radio").unwrap(), None);
    }
}
