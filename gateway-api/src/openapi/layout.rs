//! Layout of the committed document. A value that fits on one line is on one line, so that a change is few lines of a
//! diff.

use serde_json::Value;

const WIDTH: usize = 120;

/// Returns JSON with two spaces of indentation per level and a final line feed.
pub(super) fn text(value: &Value) -> String {
    let mut text = String::new();
    write(value, 0, 0, &mut text);
    text.push('\n');
    text
}

/// Writes a value at a level, after `used` columns of its line.
fn write(value: &Value, level: usize, used: usize, text: &mut String) {
    let line = on_one_line(value);
    let is_open = match value {
        Value::Array(items) => !items.is_empty(),
        Value::Object(fields) => !fields.is_empty(),
        _ => false,
    };
    // One more column for the comma after the value.
    if !is_open || used + line.chars().count() < WIDTH {
        text.push_str(&line);
        return;
    }
    match value {
        Value::Array(items) => {
            text.push('[');
            for (n, item) in items.iter().enumerate() {
                begin_line(n, level + 1, text);
                write(item, level + 1, 2 * (level + 1), text);
            }
            end(level, ']', text);
        }
        Value::Object(fields) => {
            text.push('{');
            for (n, (name, field)) in fields.iter().enumerate() {
                begin_line(n, level + 1, text);
                let name = format!("{}: ", Value::from(name.as_str()));
                text.push_str(&name);
                write(field, level + 1, 2 * (level + 1) + name.chars().count(), text);
            }
            end(level, '}', text);
        }
        _ => {}
    }
}

fn begin_line(n: usize, level: usize, text: &mut String) {
    text.push_str(if n == 0 { "\n" } else { ",\n" });
    text.extend(std::iter::repeat_n("  ", level));
}

fn end(level: usize, bracket: char, text: &mut String) {
    text.push('\n');
    text.extend(std::iter::repeat_n("  ", level));
    text.push(bracket);
}

fn on_one_line(value: &Value) -> String {
    match value {
        Value::Array(items) => {
            format!("[{}]", items.iter().map(on_one_line).collect::<Vec<_>>().join(", "))
        }
        Value::Object(fields) => {
            let field = |(name, value): (&String, &Value)| {
                format!("{}: {}", Value::from(name.as_str()), on_one_line(value))
            };
            format!("{{{}}}", fields.iter().map(field).collect::<Vec<_>>().join(", "))
        }
        scalar => scalar.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn short_values_are_on_one_line() {
        let long = "x".repeat(WIDTH);
        let value = json!({"a": {"$ref": "#/b"}, "c": [1, "\"", {}], "d": {"e": long}});
        let expected = format!(
            "{{\n  \"a\": {{\"$ref\": \"#/b\"}},\n  \"c\": [1, \"\\\"\", {{}}],\n  \"d\": {{\n    \"e\": \"{long}\"\n  }}\n}}\n"
        );
        assert_eq!(text(&value), expected);
    }

    #[test]
    fn the_text_is_the_value() {
        let value =
            json!({"deep": vec![json!({"name": "a\nb", "list": vec![vec![0; 40]; 3], "none": null}); 3]});
        assert_eq!(serde_json::from_str::<Value>(&text(&value)).unwrap(), value);
        assert!(text(&value).lines().all(|line| line.chars().count() <= WIDTH));
    }
}
