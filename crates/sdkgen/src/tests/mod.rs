//! Generated types and names in both languages, and writing of files.

#![allow(clippy::panic, clippy::unwrap_used)]

mod files;
mod schemas;

use serde_json::Value;

use super::SdkFile;
use super::operation::SdkOperation;

fn operation(name: &str, input: Value, output: Value) -> SdkOperation {
    SdkOperation {
        name: name.to_owned(),
        domain: name
            .rsplit_once('.')
            .map_or("search", |(domain, _)| domain)
            .to_owned(),
        tool: "exa_api".to_owned(),
        summary: "Do it".to_owned(),
        description: String::new(),
        deprecated: false,
        follow: None,
        input,
        output,
    }
}

fn text_of(files: &[SdkFile], path: &str) -> String {
    let found = files.iter().find(|file| file.path == path);
    found
        .unwrap_or_else(|| panic!("{path} was not generated"))
        .text
        .clone()
}
