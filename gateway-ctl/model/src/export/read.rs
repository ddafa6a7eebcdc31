//! Reading of JSON from a stream, with a limit on the memory that its values take.

use std::cell::Cell;
use std::fmt;
use std::io::Read;

use serde::de::{DeserializeSeed, Deserializer, Error as _, MapAccess, SeqAccess, Visitor};
use serde_json::{Map, Number, Value};

/// Memory of a value, and of a member of an object with its key, without their texts.
const VALUE_BYTES: usize = 32;
const MEMBER_BYTES: usize = 96;

/// Reason for which a stream was not read.
#[derive(Debug, thiserror::Error)]
pub enum ReadError {
    #[error("the values take more than {limit} bytes of memory")]
    TooLarge { limit: usize },
    #[error(transparent)]
    Json(#[from] serde_json::Error),
}

/// Reads a value to the end of the stream.
pub fn read(stream: impl Read, limit: usize) -> Result<Value, ReadError> {
    let left = Cell::new(Some(limit));
    let mut deserializer = serde_json::Deserializer::from_reader(stream);
    let value = Limited(&left).deserialize(&mut deserializer);
    let read = value.and_then(|value| deserializer.end().map(|()| value));
    match read {
        Err(_) if left.get().is_none() => Err(ReadError::TooLarge { limit }),
        other => Ok(other?),
    }
}

/// Memory that is left; `None` after it was exceeded.
#[derive(Clone, Copy)]
struct Limited<'a>(&'a Cell<Option<usize>>);

impl Limited<'_> {
    fn take<E: serde::de::Error>(self, bytes: usize) -> Result<(), E> {
        let left = self.0.get().and_then(|left| left.checked_sub(bytes));
        self.0.set(left);
        left.map(drop).ok_or_else(|| E::custom("too large"))
    }

    fn text<E: serde::de::Error>(self, text: String) -> Result<Value, E> {
        self.take(VALUE_BYTES + text.capacity())?;
        Ok(Value::String(text))
    }
}

impl<'de> DeserializeSeed<'de> for Limited<'_> {
    type Value = Value;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Value, D::Error> {
        deserializer.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for Limited<'_> {
    type Value = Value;

    fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("any JSON value")
    }

    fn visit_bool<E: serde::de::Error>(self, value: bool) -> Result<Value, E> {
        self.take(VALUE_BYTES).map(|()| Value::Bool(value))
    }

    fn visit_i64<E: serde::de::Error>(self, value: i64) -> Result<Value, E> {
        self.take(VALUE_BYTES).map(|()| value.into())
    }

    fn visit_u64<E: serde::de::Error>(self, value: u64) -> Result<Value, E> {
        self.take(VALUE_BYTES).map(|()| value.into())
    }

    fn visit_f64<E: serde::de::Error>(self, value: f64) -> Result<Value, E> {
        self.take(VALUE_BYTES)?;
        Ok(Number::from_f64(value).map_or(Value::Null, Value::Number))
    }

    fn visit_str<E: serde::de::Error>(self, value: &str) -> Result<Value, E> {
        self.text(value.to_owned())
    }

    fn visit_string<E: serde::de::Error>(self, value: String) -> Result<Value, E> {
        self.text(value)
    }

    fn visit_unit<E: serde::de::Error>(self) -> Result<Value, E> {
        self.take(VALUE_BYTES).map(|()| Value::Null)
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut elements: A) -> Result<Value, A::Error> {
        self.take(VALUE_BYTES)?;
        let mut list = Vec::new();
        while let Some(value) = elements.next_element_seed(self)? {
            list.push(value);
        }
        Ok(Value::Array(list))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut members: A) -> Result<Value, A::Error> {
        self.take(VALUE_BYTES)?;
        let mut map = Map::new();
        while let Some(key) = members.next_key::<String>()? {
            self.take::<A::Error>(MEMBER_BYTES + key.capacity())?;
            let value = members.next_value_seed(self)?;
            if map.insert(key, value).is_some() {
                return Err(A::Error::custom("a key is given twice"));
            }
        }
        Ok(Value::Object(map))
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn values_are_read_as_they_are_and_garbage_within_the_limit() {
        let value = json!({"a": [1, -2, 0.5, null, true, "text"], "b": {"c": {}}, "d": u64::MAX});
        assert_eq!(read(value.to_string().as_bytes(), 10_000).unwrap(), value);
        assert!(matches!(read(&b"{\"a\": 1} x"[..], 10_000), Err(ReadError::Json(_))));
        assert!(matches!(read(&b"{\"a\": "[..], 10_000), Err(ReadError::Json(_))));
        assert!(matches!(read(&b"{\"a\": 1, \"a\": 2}"[..], 10_000), Err(ReadError::Json(_))));
        // An endless list costs what the limit allows, and no more.
        let endless = std::io::Read::chain(&b"["[..], Repeat(0));
        assert!(matches!(read(endless, 1 << 20), Err(ReadError::TooLarge { limit: 1_048_576 })));
    }

    struct Repeat(usize);

    impl Read for Repeat {
        fn read(&mut self, buffer: &mut [u8]) -> std::io::Result<usize> {
            for byte in buffer.iter_mut() {
                *byte = b"0,"[self.0 % 2];
                self.0 += 1;
            }
            Ok(buffer.len())
        }
    }
}
