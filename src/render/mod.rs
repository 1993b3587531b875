//! Rendering of results.
//!
//! A response of the API is split into an `Envelope`, reduced to what a `View` asks for, and written as
//! Markdown or JSON with the same information. This layer knows neither the network nor the protocol.

mod budget;
mod columns;
mod compact;
mod csv;
mod date;
mod deprecated;
mod document;
mod envelope;
mod fields;
mod filter;
mod header;
mod inline;
mod json;
mod level;
mod markdown;
mod passages;
mod path;
mod plain;
mod renderer;
mod selection;
mod shape;
mod text;
mod view;

pub(crate) use columns::ColumnTitles;
pub use compact::StructuredContent;
pub(crate) use csv::{csv_cells, csv_text, push_csv_cell};
pub(crate) use deprecated::add_deprecated_keys;
pub(crate) use envelope::Envelope;
pub(crate) use filter::{FilterStats, Filters};
pub(crate) use level::ContentLevel;
pub use renderer::Rendered;
pub(crate) use renderer::{RenderInput, ResourceLink, render};
pub(crate) use selection::selected_indexes;
pub use view::OutputFormat;
pub(crate) use view::{ExtraContents, View, ViewError};
