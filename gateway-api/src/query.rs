//! Query parameters as types: an endpoint declares a struct, from which the parameters of the document, the refusal of
//! unknown names and the values of the handler come.

use std::fmt;
use std::str::FromStr;

use serde::de::value::StrDeserializer;
use serde::de::{
    self, DeserializeOwned, DeserializeSeed, Deserializer, IntoDeserializer, MapAccess, Visitor,
};
use serde::forward_to_deserialize_any;

use crate::error::ApiError;
use crate::request::Query;

pub(crate) mod parameters;

impl Query {
    /// Decodes the parameters of a type. Names that it does not have are ignored: the dispatcher refuses those that no
    /// type of the endpoint has.
    pub fn read<Q: DeserializeOwned>(&self) -> Result<Q, ApiError> {
        let names = names::<Q>();
        let pairs = self.0.iter().enumerate().filter(|(at, (name, _))| {
            // Of a parameter that is given twice, the first counts.
            names.contains(&name.as_str()) && !self.0[..*at].iter().any(|(before, _)| before == name)
        });
        let pairs = pairs.map(|(_, (name, text))| (name.as_str(), text.as_str()));
        Q::deserialize(Pairs { pairs, value: None }).map_err(Refusal::into_error)
    }
}

/// Returns the names of the parameters of a type.
pub(crate) fn names<Q: DeserializeOwned>() -> &'static [&'static str] {
    let mut names: &'static [&'static str] = &[];
    // The fields are known when they are asked for; there is nothing to decode.
    let _ = Q::deserialize(FieldNames(&mut names));
    names
}

/// Refusal of a parameter.
#[derive(Debug)]
struct Refusal {
    name: String,
    message: String,
}

impl Refusal {
    fn into_error(self) -> ApiError {
        ApiError::invalid_parameter(&self.name, self.message)
    }

    /// Returns the refusal of this parameter.
    fn of(self, name: &str, text: &str) -> Refusal {
        let expected = self.message.strip_prefix("expected ").unwrap_or(&self.message);
        Refusal { name: name.to_owned(), message: format!("{name} is {expected}; {text:?} is not.") }
    }
}

impl fmt::Display for Refusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)
    }
}

impl std::error::Error for Refusal {}

impl de::Error for Refusal {
    fn custom<T: fmt::Display>(message: T) -> Refusal {
        Refusal { name: String::new(), message: message.to_string() }
    }

    fn unknown_variant(_: &str, expected: &'static [&'static str]) -> Refusal {
        let message = match expected {
            [rest @ .., last] if !rest.is_empty() => format!("{} or {last}", rest.join(", ")),
            _ => expected.join(""),
        };
        Refusal { name: String::new(), message }
    }
}

/// Names and texts of parameters.
struct Pairs<'de, I> {
    pairs: I,
    /// Parameter whose name was read.
    value: Option<(&'de str, &'de str)>,
}

impl<'de, I: Iterator<Item = (&'de str, &'de str)>> Deserializer<'de> for Pairs<'de, I> {
    type Error = Refusal;

    fn deserialize_any<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Refusal> {
        visitor.visit_map(self)
    }

    forward_to_deserialize_any! {
        bool i8 i16 i32 i64 u8 u16 u32 u64 f32 f64 char str string bytes byte_buf option unit unit_struct
        newtype_struct seq tuple tuple_struct map struct enum identifier ignored_any
    }
}

impl<'de, I: Iterator<Item = (&'de str, &'de str)>> MapAccess<'de> for Pairs<'de, I> {
    type Error = Refusal;

    fn next_key_seed<K: DeserializeSeed<'de>>(&mut self, seed: K) -> Result<Option<K::Value>, Refusal> {
        self.value = self.pairs.next();
        let Some((name, _)) = self.value else { return Ok(None) };
        let name: StrDeserializer<'de, Refusal> = name.into_deserializer();
        seed.deserialize(name).map(Some)
    }

    fn next_value_seed<S: DeserializeSeed<'de>>(&mut self, seed: S) -> Result<S::Value, Refusal> {
        let (name, text) = self.value.take().unwrap_or_default();
        seed.deserialize(Value(text)).map_err(|refusal| refusal.of(name, text))
    }
}

/// Text of a parameter.
#[derive(Clone, Copy)]
struct Value<'a>(&'a str);

impl Value<'_> {
    fn parse<T: FromStr>(self, expected: &str) -> Result<T, Refusal> {
        self.0.parse().map_err(|_| de::Error::custom(expected))
    }
}

macro_rules! numbers {
    ($($method:ident $visit:ident $expected:literal,)+) => {
        $(fn $method<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Refusal> {
            self.parse($expected).and_then(|number| visitor.$visit(number))
        })+
    };
}

impl<'de> Deserializer<'de> for Value<'de> {
    type Error = Refusal;

    fn deserialize_any<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Refusal> {
        visitor.visit_borrowed_str(self.0)
    }

    fn deserialize_bool<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Refusal> {
        match self.0 {
            "" | "true" | "1" => visitor.visit_bool(true),
            "false" | "0" => visitor.visit_bool(false),
            _ => Err(de::Error::custom("true or false")),
        }
    }

    numbers! {
        deserialize_u8 visit_u8 "a whole number from 0 to 255",
        deserialize_u16 visit_u16 "a whole number from 0 to 65535",
        deserialize_u32 visit_u32 "a whole number of at least 0",
        deserialize_u64 visit_u64 "a whole number of at least 0",
        deserialize_i64 visit_i64 "a whole number",
    }

    fn deserialize_option<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Refusal> {
        visitor.visit_some(self)
    }

    fn deserialize_newtype_struct<V: Visitor<'de>>(
        self,
        _: &'static str,
        visitor: V,
    ) -> Result<V::Value, Refusal> {
        visitor.visit_newtype_struct(self)
    }

    fn deserialize_enum<V: Visitor<'de>>(
        self,
        _: &'static str,
        _: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, Refusal> {
        let variant: StrDeserializer<'de, Refusal> = self.0.into_deserializer();
        visitor.visit_enum(variant)
    }

    forward_to_deserialize_any! {
        i8 i16 i32 f32 f64 char str string bytes byte_buf unit unit_struct seq tuple tuple_struct map struct
        identifier ignored_any
    }
}

/// Reads the names of the fields of a type.
struct FieldNames<'a>(&'a mut &'static [&'static str]);

impl<'de> Deserializer<'de> for FieldNames<'_> {
    type Error = Refusal;

    fn deserialize_any<V: Visitor<'de>>(self, _: V) -> Result<V::Value, Refusal> {
        Err(de::Error::custom("a struct"))
    }

    fn deserialize_struct<V: Visitor<'de>>(
        self,
        _: &'static str,
        fields: &'static [&'static str],
        _: V,
    ) -> Result<V::Value, Refusal> {
        *self.0 = fields;
        Err(de::Error::custom("nothing is read"))
    }

    forward_to_deserialize_any! {
        bool i8 i16 i32 i64 u8 u16 u32 u64 f32 f64 char str string bytes byte_buf option unit unit_struct
        newtype_struct seq tuple tuple_struct map enum identifier ignored_any
    }
}

#[cfg(test)]
mod tests {
    use gateway_model::Id;
    use serde::Deserialize;

    use super::parameters::{Limit, Minutes};
    use super::*;

    #[derive(Debug, Default, Deserialize, PartialEq)]
    #[serde(default)]
    struct Wanted {
        limit: Limit<50, 500>,
        minutes: Minutes,
        full: bool,
        colour: Option<Colour>,
        id: Option<Id>,
        seconds: u32,
        #[serde(rename = "type")]
        kind: Option<String>,
    }

    #[derive(Debug, Deserialize, PartialEq)]
    #[serde(rename_all = "lowercase")]
    enum Colour {
        Red,
        Green,
        Blue,
    }

    fn read(query: &str) -> Result<Wanted, String> {
        Query::parse(Some(query)).unwrap().read().map_err(|error| error.message)
    }

    #[test]
    fn values_are_those_of_the_query_or_the_defaults() {
        assert_eq!(names::<Wanted>(), ["limit", "minutes", "full", "colour", "id", "seconds", "type"]);
        let defaults = Wanted::default();
        assert_eq!((defaults.limit.get(), read("")), (50, Ok(Wanted::default())));
        let read = read("limit=9999&full&colour=green&seconds=7&type=AAAA&colour=red&unknown=1").unwrap();
        assert_eq!((read.limit.get(), read.full, read.seconds), (500, true, 7));
        assert_eq!((read.colour, read.kind.as_deref()), (Some(Colour::Green), Some("AAAA")));
    }

    #[test]
    fn a_refusal_names_the_parameter_what_it_is_and_the_text() {
        for (query, message) in [
            ("limit=0", "limit is a whole number from 1 to 500; \"0\" is not."),
            ("limit=x", "limit is a whole number from 1 to 500; \"x\" is not."),
            ("minutes=-1", "minutes is a whole number from 1 to 1440; \"-1\" is not."),
            ("full=2", "full is true or false; \"2\" is not."),
            ("colour=pink", "colour is red, green or blue; \"pink\" is not."),
            ("seconds=1e3", "seconds is a whole number of at least 0; \"1e3\" is not."),
        ] {
            assert_eq!(read(query), Err(message.to_owned()), "{query}");
        }
        let refused = read("id=7").unwrap_err();
        assert!(refused.starts_with("id is ") && refused.ends_with("; \"7\" is not."), "{refused}");
    }
}
