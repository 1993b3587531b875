//! `/search`, `/findSimilar`, `/contents` and `/answer`: all of it follows from the request.

mod answer;
mod contents;
mod cost;
mod get_contents;
mod html;
mod output;
mod query;

pub(crate) use answer::answer;
pub(crate) use contents::Contents;
pub(crate) use get_contents::get_contents;
pub(crate) use output::{grounding, structured};
pub(crate) use query::{find_similar, results, search};
