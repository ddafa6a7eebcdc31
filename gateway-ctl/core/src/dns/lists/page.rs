//! Recognition of documents that are no list: pages of a captive portal or of a sign-in, and answers in JSON.
//!
//! A captive portal answers each URL with status 200: a page with one name on a line of its own replaced a list of
//! thousands. The media type alone decides nothing, because servers send lists as HTML. A list with less than a quarter
//! of the entries of the copy in use, if that has 20 or more, is refused as well, until no check has succeeded for 7
//! days. Both are failed checks, and the copy in use stays.

/// Signs of a page in the lines of a list.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PageSigns {
    /// Lines that begin with markup.
    pub markup: u64,
    /// The first line that is not empty is markup or the beginning of an object.
    pub at_start: bool,
    started: bool,
}

impl PageSigns {
    /// Adds a line. Returns true if it is markup.
    pub(super) fn line(&mut self, line: &[u8]) -> bool {
        let line = line.trim_ascii_start();
        let Some(first) = line.first() else { return false };
        let is_markup = *first == b'<'
            && line
                .get(1)
                .is_some_and(|next| next.is_ascii_alphabetic() || matches!(next, b'!' | b'/' | b'?'));
        if !self.started {
            self.started = true;
            self.at_start = is_markup || *first == b'{';
        }
        self.markup += u64::from(is_markup);
        is_markup
    }

    /// Reports whether the document with so many entries is a page. `as_page`: the server calls it one.
    pub const fn is_page(&self, taken: u64, as_page: bool) -> bool {
        self.at_start || self.markup > 0 && (as_page || self.markup >= taken)
    }
}
