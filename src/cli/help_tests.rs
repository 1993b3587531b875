//! Checks that the help lists every setting.

use std::collections::BTreeSet;

use super::environment::{ENVIRONMENT, HTTP_ENVIRONMENT};
use crate::config::SETTINGS;

/// The help lists every variable and no others.
#[test]
fn the_help_lists_every_setting() {
    let texts = [ENVIRONMENT, HTTP_ENVIRONMENT];
    let lines = texts.iter().flat_map(|text| text.lines());
    let heads = lines.filter_map(|line| {
        line.strip_prefix("  ")
            .filter(|rest| !rest.starts_with(' '))
    });
    let names = heads.flat_map(|head| {
        let named = head.split("  ").next().unwrap_or_default();
        let names = named.split([',', ' ']);
        names.filter(|name| {
            name.len() > 3
                && name
                    .chars()
                    .all(|letter| letter.is_ascii_uppercase() || letter == '_')
        })
    });
    let names: BTreeSet<&str> = names.collect();
    let variables = SETTINGS.iter().map(|setting| setting.variable.to_owned());
    let secrets = SETTINGS.iter().filter(|setting| setting.secret);
    let files = secrets.map(|setting| format!("{}_FILE", setting.variable));
    let expected = variables.chain(files).chain(["EXA_MCP_CONFIG".to_owned()]);
    let expected: BTreeSet<String> = expected.collect();
    let names: BTreeSet<String> = names.into_iter().map(str::to_owned).collect();
    assert_eq!(names, expected);
}
