//! YAML to JSON values, as far as both have them.

use serde_json::{Map, Value};
use serde_yaml::Value as Yaml;

/// Reason for which a YAML value has no JSON counterpart, and its position.
#[derive(Debug)]
pub(super) struct Foreign {
    pub path: String,
    pub message: &'static str,
}

/// Keys without a value count as left out.
pub(super) fn to_json(yaml: Yaml, path: &str) -> Result<Value, Foreign> {
    let foreign = |message| Foreign { path: path.to_owned(), message };
    Ok(match yaml {
        Yaml::Null => Value::Null,
        Yaml::Bool(value) => Value::Bool(value),
        Yaml::String(text) => Value::String(text),
        Yaml::Number(number) => {
            let value = match (number.as_i64(), number.as_u64(), number.as_f64()) {
                (Some(value), _, _) => Some(value.into()),
                (_, Some(value), _) => Some(value.into()),
                (_, _, Some(value)) => serde_json::Number::from_f64(value),
                _ => None,
            };
            Value::Number(value.ok_or_else(|| foreign("This number is not finite."))?)
        }
        Yaml::Sequence(list) => {
            let list = list.into_iter().enumerate();
            Value::Array(
                list.map(|(index, value)| to_json(value, &format!("{path}[{index}]")))
                    .collect::<Result<_, _>>()?,
            )
        }
        Yaml::Mapping(mapping) => {
            let mut map = Map::new();
            for (key, value) in mapping {
                let Yaml::String(key) = key else { return Err(foreign("A key must be a text.")) };
                let path = if path.is_empty() { key.clone() } else { format!("{path}.{key}") };
                match to_json(value, &path)? {
                    Value::Null => None,
                    value => map.insert(key, value),
                };
            }
            Value::Object(map)
        }
        Yaml::Tagged(_) => return Err(foreign("Tags are not used here.")),
    })
}
