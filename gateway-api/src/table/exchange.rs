//! Forms of requests and responses: each the one of the possible ones that an endpoint has.

use super::schema::SchemaSource;

/// Location of a path.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Location {
    /// Below the API root.
    #[default]
    Api,
    /// Below the root of the server.
    Root,
    /// Below the root of the server. The last placeholder takes the rest of the path, with its slashes. Such an endpoint
    /// answers only paths whose first segment after the shared part begins no other path.
    RestOfRoot,
}

/// Body that a request has.
#[derive(Clone, Copy, Default)]
pub enum Input {
    /// None. One that is sent is ignored.
    #[default]
    None,
    /// A JSON object.
    Json { schema: SchemaSource, is_required: bool },
    /// A JSON object, or a text or the file of a form that is stored in a field of it. The query provides the other fields.
    Text { schema: SchemaSource, is_required: bool, field: &'static str },
    /// A large JSON object, which is required. It is written to a file while it arrives, and the handler reads it from there.
    Document(SchemaSource),
    /// A [`Document`](Input::Document), or a file of any other media type. The passphrase that decrypts it comes in a header.
    File(SchemaSource),
}

impl Input {
    /// A JSON object that may be left out.
    pub(super) fn optional_json(schema: SchemaSource) -> Input {
        Input::Json { schema, is_required: false }
    }

    /// A JSON object that may not be left out.
    pub(crate) fn json(schema: SchemaSource) -> Input {
        Input::Json { schema, is_required: true }
    }

    pub fn schema(&self) -> Option<SchemaSource> {
        match *self {
            Input::None => None,
            Input::Json { schema, .. } | Input::Text { schema, .. } => Some(schema),
            Input::Document(schema) | Input::File(schema) => Some(schema),
        }
    }

    pub fn is_required(&self) -> bool {
        match *self {
            Input::None => false,
            Input::Json { is_required, .. } | Input::Text { is_required, .. } => is_required,
            Input::Document(_) | Input::File(_) => true,
        }
    }

    /// Reports whether the body is written to a file.
    pub(crate) fn is_spooled(&self) -> bool {
        matches!(self, Input::Document(_) | Input::File(_))
    }

    /// Reports whether the body may be a file.
    pub(crate) fn is_file(&self) -> bool {
        matches!(self, Input::File(_))
    }

    /// Returns the field that a text is stored in.
    pub(crate) fn text_field(&self) -> Option<&'static str> {
        match self {
            Input::Text { field, .. } => Some(field),
            _ => None,
        }
    }

    pub(super) fn require(&mut self) {
        if let Input::Json { is_required, .. } | Input::Text { is_required, .. } = self {
            *is_required = true;
        }
    }

    pub(super) fn accept_text(&mut self, field: &'static str) {
        if let Input::Json { schema, is_required } = *self {
            *self = Input::Text { schema, is_required, field };
        }
    }

    /// Replaces the schema of a JSON object.
    pub(crate) fn describe(&mut self, new: SchemaSource) {
        match self {
            Input::None => *self = Input::json(new),
            Input::Json { schema, .. } | Input::Text { schema, .. } => *schema = new,
            Input::Document(schema) | Input::File(schema) => *schema = new,
        }
    }
}

/// Content of a success.
#[derive(Clone, Copy, Default)]
pub enum Output {
    /// None.
    #[default]
    None,
    /// A value in the JSON envelope.
    Data(SchemaSource),
    /// A list of such values in the JSON envelope.
    List(SchemaSource),
    /// A list. The query may also name fields of the listed objects; the names come from the schema.
    FilteredList(SchemaSource),
    /// Bytes of a media type, outside of the JSON envelope.
    Bytes(&'static str),
    /// A file of the dashboard. The query is for a script of the page.
    Page(&'static str),
}

impl Output {
    /// Returns the schema of the value, or of the values of a list.
    pub fn schema(&self) -> Option<SchemaSource> {
        match *self {
            Output::Data(schema) | Output::List(schema) | Output::FilteredList(schema) => Some(schema),
            Output::None | Output::Bytes(_) | Output::Page(_) => None,
        }
    }

    /// Returns the media type of a response outside the JSON envelope.
    pub fn media(&self) -> Option<&'static str> {
        match *self {
            Output::Bytes(media) | Output::Page(media) => Some(media),
            Output::None | Output::Data(_) | Output::List(_) | Output::FilteredList(_) => None,
        }
    }

    pub(crate) fn is_list(&self) -> bool {
        matches!(self, Output::List(_) | Output::FilteredList(_))
    }

    pub(crate) fn is_filtered(&self) -> bool {
        matches!(self, Output::FilteredList(_))
    }

    pub(crate) fn is_page(&self) -> bool {
        matches!(self, Output::Page(_))
    }
}

/// Versions of what an endpoint shows or changes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Versions {
    #[default]
    Unknown,
    /// Responses have an `ETag` that `If-Match` accepts.
    Tagged,
}

/// Cost of a response.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Cost {
    #[default]
    Light,
    /// It may be large or take long, so only a few are computed concurrently. Lists always are.
    Heavy,
}

/// Condition under which an endpoint works.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Availability {
    #[default]
    WithStore,
    /// Also while the store cannot be used.
    Always,
}
