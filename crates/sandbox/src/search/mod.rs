//! `/search`, `/findSimilar`, `/contents` and `/answer`. Responses depend on the request and the seed only.

mod answer;
mod contents;
mod cost;
mod get_contents;
mod html;
mod output;
mod query;
mod rules;
mod stream;

pub(crate) use answer::answer;
pub(crate) use contents::ContentsOptions;
pub(crate) use get_contents::get_contents;
pub(crate) use output::{grounding, structured};
pub(crate) use query::{find_similar, results, search};
