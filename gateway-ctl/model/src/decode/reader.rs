//! A deserializer over a JSON value that knows where it is: messages name the field, and unknown keys their path.
//!
//! Input and stored rows are read through this one type, so the compiler makes one copy of the code that reads a type.
//! It accepts what `&serde_json::Value` accepts, with the same messages, but no array in place of an object. Keys of
//! objects are read as text.

use std::cell::{OnceCell, RefCell};

use serde::de::value::BorrowedStrDeserializer;
use serde::de::{
    DeserializeSeed, Deserializer, EnumAccess, Error as _, IntoDeserializer, MapAccess, SeqAccess,
    Unexpected, VariantAccess, Visitor,
};
use serde::{Deserialize, forward_to_deserialize_any};
use serde_json::{Error, Map, Value};

use super::step::{Step, path_text};

/// Notes about a value that is being read.
#[derive(Debug, Default)]
pub(super) struct Trace {
    /// Path of the value with the first error.
    pub failed_at: OnceCell<Vec<Step>>,
    /// Paths of ignored values, if they are wanted.
    pub ignored: Option<RefCell<Vec<String>>>,
}

/// A value's place in the whole.
enum Place<'p> {
    Root,
    Key(&'p Place<'p>, &'p str),
    Index(&'p Place<'p>, usize),
}

impl Place<'_> {
    fn path(&self) -> Vec<Step> {
        let (mut path, step) = match self {
            Place::Root => return Vec::new(),
            Place::Key(parent, key) => (parent.path(), Step::Key((*key).to_owned())),
            Place::Index(parent, index) => (parent.path(), Step::Index(*index)),
        };
        path.push(step);
        path
    }
}

/// Reads a value.
pub(super) fn read<'de, T: Deserialize<'de>>(value: &'de Value, trace: &Trace) -> Result<T, Error> {
    T::deserialize(Reader { value, place: &Place::Root, trace })
}

#[derive(Clone, Copy)]
struct Reader<'de: 'p, 'p> {
    value: &'de Value,
    place: &'p Place<'p>,
    trace: &'p Trace,
}

impl<'de: 'p, 'p> Reader<'de, 'p> {
    #[cold]
    fn wrong_type(self, visitor: &dyn serde::de::Expected) -> Error {
        Error::invalid_type(unexpected(self.value), visitor)
    }

    #[cold]
    fn note_failure(self) {
        self.trace.failed_at.get_or_init(|| self.place.path());
    }

    #[cold]
    fn note_ignored(self) {
        if let Some(ignored) = &self.trace.ignored {
            ignored.borrow_mut().push(path_text(&self.place.path()));
        }
    }

    /// Reads a part of the value.
    fn read<S: DeserializeSeed<'de>>(self, seed: S) -> Result<S::Value, Error> {
        let result = seed.deserialize(self);
        if result.is_err() {
            self.note_failure();
        }
        result
    }

    fn visit_array<V: Visitor<'de>>(self, array: &'de [Value], visitor: V) -> Result<V::Value, Error> {
        let mut elements = Elements { rest: array, whole: self, index: 0 };
        let value = visitor.visit_seq(&mut elements)?;
        match elements.rest.is_empty() {
            true => Ok(value),
            false => Err(Error::invalid_length(array.len(), &"fewer elements in array")),
        }
    }

    fn visit_object<V: Visitor<'de>>(
        self,
        object: &'de Map<String, Value>,
        visitor: V,
    ) -> Result<V::Value, Error> {
        let mut members = Members { rest: object.iter(), whole: self, current: None };
        let value = visitor.visit_map(&mut members)?;
        match members.rest.len() {
            0 => Ok(value),
            _ => Err(Error::invalid_length(object.len(), &"fewer elements in map")),
        }
    }
}

fn unexpected(value: &Value) -> Unexpected<'_> {
    match value {
        Value::Null => Unexpected::Unit,
        Value::Bool(value) => Unexpected::Bool(*value),
        Value::Number(number) => match (number.as_u64(), number.as_i64(), number.as_f64()) {
            (Some(value), _, _) => Unexpected::Unsigned(value),
            (None, Some(value), _) => Unexpected::Signed(value),
            (None, None, Some(value)) => Unexpected::Float(value),
            (None, None, None) => Unexpected::Other("number"),
        },
        Value::String(text) => Unexpected::Str(text),
        Value::Array(_) => Unexpected::Seq,
        Value::Object(_) => Unexpected::Map,
    }
}

macro_rules! numbers {
    ($($method:ident)*) => {$(
        fn $method<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Error> {
            match self.value {
                Value::Number(number) => number.deserialize_any(visitor),
                _ => Err(self.wrong_type(&visitor)),
            }
        }
    )*};
}

impl<'de: 'p, 'p> Deserializer<'de> for Reader<'de, 'p> {
    type Error = Error;

    fn deserialize_any<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Error> {
        match self.value {
            Value::Null => visitor.visit_unit(),
            Value::Bool(value) => visitor.visit_bool(*value),
            Value::Number(number) => number.deserialize_any(visitor),
            Value::String(text) => visitor.visit_borrowed_str(text),
            Value::Array(array) => self.visit_array(array, visitor),
            Value::Object(object) => self.visit_object(object, visitor),
        }
    }

    numbers! {
        deserialize_i8 deserialize_i16 deserialize_i32 deserialize_i64 deserialize_i128
        deserialize_u8 deserialize_u16 deserialize_u32 deserialize_u64 deserialize_u128
        deserialize_f32 deserialize_f64
    }

    fn deserialize_bool<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Error> {
        match self.value {
            Value::Bool(value) => visitor.visit_bool(*value),
            _ => Err(self.wrong_type(&visitor)),
        }
    }

    fn deserialize_str<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Error> {
        match self.value {
            Value::String(text) => visitor.visit_borrowed_str(text),
            _ => Err(self.wrong_type(&visitor)),
        }
    }

    fn deserialize_string<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Error> {
        self.deserialize_str(visitor)
    }

    fn deserialize_char<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Error> {
        self.deserialize_str(visitor)
    }

    fn deserialize_identifier<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Error> {
        self.deserialize_str(visitor)
    }

    fn deserialize_bytes<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Error> {
        match self.value {
            Value::String(text) => visitor.visit_borrowed_str(text),
            Value::Array(array) => self.visit_array(array, visitor),
            _ => Err(self.wrong_type(&visitor)),
        }
    }

    fn deserialize_byte_buf<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Error> {
        self.deserialize_bytes(visitor)
    }

    fn deserialize_option<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Error> {
        match self.value {
            Value::Null => visitor.visit_none(),
            _ => visitor.visit_some(self),
        }
    }

    fn deserialize_unit<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Error> {
        match self.value {
            Value::Null => visitor.visit_unit(),
            _ => Err(self.wrong_type(&visitor)),
        }
    }

    fn deserialize_unit_struct<V: Visitor<'de>>(
        self,
        _name: &'static str,
        visitor: V,
    ) -> Result<V::Value, Error> {
        self.deserialize_unit(visitor)
    }

    fn deserialize_newtype_struct<V: Visitor<'de>>(
        self,
        _name: &'static str,
        visitor: V,
    ) -> Result<V::Value, Error> {
        visitor.visit_newtype_struct(self)
    }

    fn deserialize_seq<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Error> {
        match self.value {
            Value::Array(array) => self.visit_array(array, visitor),
            _ => Err(self.wrong_type(&visitor)),
        }
    }

    fn deserialize_tuple<V: Visitor<'de>>(self, _length: usize, visitor: V) -> Result<V::Value, Error> {
        self.deserialize_seq(visitor)
    }

    fn deserialize_tuple_struct<V: Visitor<'de>>(
        self,
        _name: &'static str,
        _length: usize,
        visitor: V,
    ) -> Result<V::Value, Error> {
        self.deserialize_seq(visitor)
    }

    fn deserialize_map<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Error> {
        match self.value {
            Value::Object(object) => self.visit_object(object, visitor),
            _ => Err(self.wrong_type(&visitor)),
        }
    }

    fn deserialize_struct<V: Visitor<'de>>(
        self,
        _name: &'static str,
        _fields: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, Error> {
        self.deserialize_map(visitor)
    }

    fn deserialize_enum<V: Visitor<'de>>(
        self,
        _name: &'static str,
        _variants: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, Error> {
        match self.value {
            Value::String(variant) => visitor.visit_enum(Variant { variant, content: None }),
            Value::Object(object) => {
                let mut members = object.iter();
                match (members.next(), members.next()) {
                    (Some((variant, value)), None) => {
                        visitor.visit_enum(Variant { variant, content: Some(Reader { value, ..self }) })
                    }
                    _ => Err(Error::invalid_value(Unexpected::Map, &"map with a single key")),
                }
            }
            other => Err(Error::invalid_type(unexpected(other), &"string or map")),
        }
    }

    fn deserialize_ignored_any<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Error> {
        self.note_ignored();
        visitor.visit_unit()
    }
}

struct Elements<'de: 'p, 'p> {
    rest: &'de [Value],
    whole: Reader<'de, 'p>,
    index: usize,
}

impl<'de> SeqAccess<'de> for Elements<'de, '_> {
    type Error = Error;

    fn next_element_seed<S: DeserializeSeed<'de>>(&mut self, seed: S) -> Result<Option<S::Value>, Error> {
        let Some((value, rest)) = self.rest.split_first() else { return Ok(None) };
        let place = Place::Index(self.whole.place, self.index);
        (self.rest, self.index) = (rest, self.index + 1);
        Reader { value, place: &place, trace: self.whole.trace }.read(seed).map(Some)
    }

    fn size_hint(&self) -> Option<usize> {
        Some(self.rest.len())
    }
}

struct Members<'de: 'p, 'p> {
    rest: serde_json::map::Iter<'de>,
    whole: Reader<'de, 'p>,
    current: Option<(&'de str, &'de Value)>,
}

impl<'de> MapAccess<'de> for Members<'de, '_> {
    type Error = Error;

    fn next_key_seed<S: DeserializeSeed<'de>>(&mut self, seed: S) -> Result<Option<S::Value>, Error> {
        let Some((key, value)) = self.rest.next() else { return Ok(None) };
        self.current = Some((key, value));
        let key = seed.deserialize(Key(key));
        if key.is_err() {
            self.whole.note_failure();
        }
        key.map(Some)
    }

    fn next_value_seed<S: DeserializeSeed<'de>>(&mut self, seed: S) -> Result<S::Value, Error> {
        let (key, value) = self.current.take().ok_or_else(|| Error::custom("value is missing"))?;
        let place = Place::Key(self.whole.place, key);
        Reader { value, place: &place, trace: self.whole.trace }.read(seed)
    }

    fn size_hint(&self) -> Option<usize> {
        Some(self.rest.len())
    }
}

/// The key of a member.
#[derive(Clone, Copy)]
struct Key<'de>(&'de str);

impl<'de> Deserializer<'de> for Key<'de> {
    type Error = Error;

    fn deserialize_any<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Error> {
        visitor.visit_borrowed_str(self.0)
    }

    fn deserialize_option<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Error> {
        visitor.visit_some(self)
    }

    fn deserialize_newtype_struct<V: Visitor<'de>>(
        self,
        _name: &'static str,
        visitor: V,
    ) -> Result<V::Value, Error> {
        visitor.visit_newtype_struct(self)
    }

    fn deserialize_enum<V: Visitor<'de>>(
        self,
        name: &'static str,
        variants: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, Error> {
        BorrowedStrDeserializer::new(self.0).deserialize_enum(name, variants, visitor)
    }

    forward_to_deserialize_any! {
        bool i8 i16 i32 i64 i128 u8 u16 u32 u64 u128 f32 f64 char str string bytes byte_buf unit unit_struct
        seq tuple tuple_struct map struct identifier ignored_any
    }
}

/// A variant of an enum, and what is below its name.
struct Variant<'de: 'p, 'p> {
    variant: &'de str,
    content: Option<Reader<'de, 'p>>,
}

impl<'de: 'p, 'p> EnumAccess<'de> for Variant<'de, 'p> {
    type Error = Error;
    type Variant = Self;

    fn variant_seed<S: DeserializeSeed<'de>>(self, seed: S) -> Result<(S::Value, Self), Error> {
        let variant: BorrowedStrDeserializer<'de, Error> = BorrowedStrDeserializer::new(self.variant);
        Ok((seed.deserialize(variant.into_deserializer())?, self))
    }
}

impl<'de> VariantAccess<'de> for Variant<'de, '_> {
    type Error = Error;

    fn unit_variant(self) -> Result<(), Error> {
        self.content.map_or(Ok(()), <()>::deserialize)
    }

    fn newtype_variant_seed<S: DeserializeSeed<'de>>(self, seed: S) -> Result<S::Value, Error> {
        match self.content {
            Some(content) => content.read(seed),
            None => Err(Error::invalid_type(Unexpected::UnitVariant, &"newtype variant")),
        }
    }

    fn tuple_variant<V: Visitor<'de>>(self, _length: usize, visitor: V) -> Result<V::Value, Error> {
        let wanted = &"tuple variant";
        let Some(content) = self.content else {
            return Err(Error::invalid_type(Unexpected::UnitVariant, wanted));
        };
        match content.value {
            Value::Array(array) if array.is_empty() => visitor.visit_unit(),
            Value::Array(array) => content.visit_array(array, visitor),
            other => Err(Error::invalid_type(unexpected(other), wanted)),
        }
    }

    fn struct_variant<V: Visitor<'de>>(
        self,
        _fields: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, Error> {
        let wanted = &"struct variant";
        let Some(content) = self.content else {
            return Err(Error::invalid_type(Unexpected::UnitVariant, wanted));
        };
        match content.value {
            Value::Object(object) => content.visit_object(object, visitor),
            other => Err(Error::invalid_type(unexpected(other), wanted)),
        }
    }
}

#[cfg(test)]
mod tests;
