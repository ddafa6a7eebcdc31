//! The dashboard: the files that the build has embedded, and their responses.
//!
//! A request is answered from a table in memory, so no path leads to a file of the machine. The files contain no data
//! of the gateway and are open to all; what they show comes from the API.
//!
//! Decision 0119 says why.

use http::StatusCode;

use crate::reply::{Content, Reply};

pub(crate) mod file;
pub(crate) mod negotiation;

use file::ASSETS;
pub use file::{Embedded, File, response};
pub use negotiation::takes_html;

pub const HTML: &str = "text/html; charset=utf-8";

const INDEX: &str = "/index.html";
const DOCUMENTATION: &str = "/docs.html";

/// Page in place of the dashboard in a build without it.
static MISSING: File =
    File::uncompressed("/missing.html", HTML, "missing", include_bytes!("assets/missing.html"));

/// Files of this build. Empty if the dashboard was not built.
static EMBEDDED: &[File] = include!(concat!(env!("OUT_DIR"), "/dashboard.rs"));

/// Table of the files.
#[derive(Clone, Copy, Debug)]
pub struct Pages(pub &'static [File]);

impl Default for Pages {
    fn default() -> Self {
        Self(EMBEDDED)
    }
}

impl Pages {
    fn find(&self, path: &str) -> Option<&'static File> {
        self.0.iter().find(|file| file.path == path)
    }

    /// Returns the page of the dashboard, whose script reads the path and draws the view.
    pub fn index(&self) -> Reply {
        self.page(INDEX)
    }

    /// Returns the page of the API documentation.
    pub fn documentation(&self) -> Reply {
        self.page(DOCUMENTATION)
    }

    /// Returns a file with a hash in its name.
    pub fn asset(&self, name: &str) -> Option<Reply> {
        self.find(&format!("{ASSETS}{name}")).map(file)
    }

    /// Returns a file, or the dashboard for the path of one of its views if a browser asks for a page.
    pub fn file_or_view(&self, path: &str, takes_html: bool) -> Option<Reply> {
        let found = self.find(&format!("/{path}")).map(file);
        found.or_else(|| takes_html.then(|| self.index()))
    }

    fn page(&self, path: &str) -> Reply {
        match self.find(path) {
            Some(found) => file(found),
            None => Reply { status: StatusCode::SERVICE_UNAVAILABLE, ..file(&MISSING) },
        }
    }
}

fn file(file: &'static File) -> Reply {
    Reply::content(Content::File(file))
}
