//! JSON with pseudonyms, value by value: no document is in memory as a whole.

use std::cell::RefCell;
use std::fmt;
use std::io::{self, Read, Write};

use serde::de::{DeserializeSeed, Deserializer, Error as _, MapAccess, SeqAccess, Visitor};
use serde_json::Deserializer as JsonReader;

use super::pseudonymizer::Pseudonymizer;

impl Pseudonymizer {
    /// Copies a JSON value. Its structure, its numbers and the words of the vocabulary stay.
    pub fn copy_json(&self, from: impl Read, to: &mut dyn Write) -> io::Result<()> {
        let out = RefCell::new(to);
        copy(from, &Rewriting { pseudonymizer: self, out: &out })
    }
}

/// Calls a function with each text of a JSON value that is not the name of a field.
pub fn for_each_string(from: impl Read, mut found: impl FnMut(&str)) -> io::Result<()> {
    copy(from, &Collecting(RefCell::new(&mut found)))
}

fn copy(from: impl Read, sink: &dyn Sink) -> io::Result<()> {
    let mut reader = JsonReader::from_reader(from);
    Element { sink, field: None }.deserialize(&mut reader).map_err(io::Error::from)?;
    reader.end().map_err(io::Error::from)
}

/// Receiver of the parts of a value.
trait Sink {
    /// Takes a sign of the structure, or a number, `true`, `false` or `null`.
    fn raw(&self, text: &str) -> io::Result<()>;
    fn key(&self, key: &str) -> io::Result<()>;
    fn text(&self, field: Option<&str>, text: &str) -> io::Result<()>;
}

struct Rewriting<'a, 'w> {
    pseudonymizer: &'a Pseudonymizer,
    out: &'a RefCell<&'w mut dyn Write>,
}

impl Rewriting<'_, '_> {
    fn quoted(&self, text: &str) -> io::Result<()> {
        serde_json::to_writer(&mut **self.out.borrow_mut(), text).map_err(io::Error::from)
    }
}

impl Sink for Rewriting<'_, '_> {
    fn raw(&self, text: &str) -> io::Result<()> {
        self.out.borrow_mut().write_all(text.as_bytes())
    }

    fn key(&self, key: &str) -> io::Result<()> {
        self.quoted(&self.pseudonymizer.key(key))
    }

    fn text(&self, field: Option<&str>, text: &str) -> io::Result<()> {
        self.quoted(&self.pseudonymizer.value(field, text))
    }
}

struct Collecting<'a>(RefCell<&'a mut dyn FnMut(&str)>);

impl Sink for Collecting<'_> {
    fn raw(&self, _: &str) -> io::Result<()> {
        Ok(())
    }

    fn key(&self, _: &str) -> io::Result<()> {
        Ok(())
    }

    fn text(&self, _: Option<&str>, text: &str) -> io::Result<()> {
        (self.0.borrow_mut())(text);
        Ok(())
    }
}

/// A value of a field, or of an element of its list.
#[derive(Clone, Copy)]
struct Element<'a> {
    sink: &'a dyn Sink,
    field: Option<&'a str>,
}

impl<'de> DeserializeSeed<'de> for Element<'_> {
    type Value = ();

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<(), D::Error> {
        deserializer.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for Element<'_> {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a JSON value")
    }

    fn visit_unit<E: serde::de::Error>(self) -> Result<(), E> {
        self.sink.raw("null").map_err(E::custom)
    }

    fn visit_bool<E: serde::de::Error>(self, value: bool) -> Result<(), E> {
        self.sink.raw(if value { "true" } else { "false" }).map_err(E::custom)
    }

    fn visit_i64<E: serde::de::Error>(self, value: i64) -> Result<(), E> {
        self.sink.raw(&value.to_string()).map_err(E::custom)
    }

    fn visit_u64<E: serde::de::Error>(self, value: u64) -> Result<(), E> {
        self.sink.raw(&value.to_string()).map_err(E::custom)
    }

    fn visit_f64<E: serde::de::Error>(self, value: f64) -> Result<(), E> {
        let text = serde_json::to_string(&value).map_err(E::custom)?;
        self.sink.raw(&text).map_err(E::custom)
    }

    fn visit_str<E: serde::de::Error>(self, text: &str) -> Result<(), E> {
        self.sink.text(self.field, text).map_err(E::custom)
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<(), A::Error> {
        let raw = |text: &str| self.sink.raw(text).map_err(A::Error::custom);
        raw("[")?;
        let first = Preceded { before: "", element: self };
        if list.next_element_seed(first)?.is_some() {
            while list.next_element_seed(Preceded { before: ",", element: self })?.is_some() {}
        }
        raw("]")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut fields: A) -> Result<(), A::Error> {
        let raw = |text: &str| self.sink.raw(text).map_err(A::Error::custom);
        raw("{")?;
        let mut is_first = true;
        while let Some(field) = fields.next_key::<String>()? {
            if !std::mem::take(&mut is_first) {
                raw(",")?;
            }
            self.sink.key(&field).map_err(A::Error::custom)?;
            raw(":")?;
            fields.next_value_seed(Element { sink: self.sink, field: Some(&field) })?;
        }
        raw("}")
    }
}

/// An element of a list behind its comma.
struct Preceded<'a> {
    before: &'static str,
    element: Element<'a>,
}

impl<'de> DeserializeSeed<'de> for Preceded<'_> {
    type Value = ();

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<(), D::Error> {
        self.element.sink.raw(self.before).map_err(D::Error::custom)?;
        self.element.deserialize(deserializer)
    }
}
