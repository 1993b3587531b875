//! What differs between the languages that a package is written in.

use super::module::{Class, Method, Module};
use super::package::Package;
use super::types::{Declaration, Declarations};
use super::{HEADER, SdkFile};

/// A language: its naming rules, and the functions that write its code.
///
/// [`Package::files`] calls the functions; what is the same in all languages is written there.
pub(super) struct Target {
    /// Type names that are reserved because every file uses them otherwise.
    pub(super) reserved_types: &'static [&'static str],
    /// Member names that no class may have.
    pub(super) reserved_members: &'static [&'static str],
    /// Turns a part of an operation name into a member name.
    pub(super) member_name: fn(&str) -> String,
    /// The suffix of methods that iterate over all pages.
    pub(super) all_suffix: &'static str,
    /// The file that stands for its folder, without extension.
    pub(super) index_file: &'static str,
    pub(super) extension: &'static str,
    /// What comes before and after [`HEADER`] in a source file.
    pub(super) header: (&'static str, &'static str),
    /// The hand-written runtime.
    pub(super) core: &'static str,
    /// Files that contain the header alone.
    pub(super) marker_files: &'static [&'static str],
    pub(super) class: fn(&Package<'_>, &Declarations, &Class<'_>) -> String,
    pub(super) response: fn(&Declarations, &Method<'_>) -> String,
    pub(super) declaration: fn(&Declarations, &Declaration) -> String,
    /// The imports of a module at this path with this body.
    pub(super) imports: fn(&Package<'_>, &Module<'_>, &str, &str) -> String,
    /// The file of the client class.
    pub(super) client: fn(&Package<'_>) -> String,
}

impl Target {
    pub(super) fn file(&self, path: &str, body: &str) -> SdkFile {
        let (before, after) = self.header;
        SdkFile {
            path: format!("{path}.{}", self.extension),
            text: format!("{before}{HEADER}.{after}{}\n", body.trim_end()),
        }
    }

    pub(super) fn marker_file(&self, path: &str) -> SdkFile {
        let (path, text) = (path.to_owned(), format!("{}{HEADER}.\n", self.header.0));
        SdkFile { path, text }
    }
}
