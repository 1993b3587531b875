//! Companies, people, articles and papers as webset items know them.

use serde_json::{Value, json};

use super::page::{Page, person};
use super::words::{COMPANY_ENDS, COMPANY_STARTS, INDUSTRIES, PLACES, POSITIONS};
use super::{Find, capital, slug, start_of, words_of};
use crate::percent;
use crate::random::Dice;
use crate::time::iso;

/// What a webset collects.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    Company,
    Person,
    Article,
    Paper,
    Custom,
}

impl Kind {
    /// From an entity as requests name it.
    pub(crate) fn of(entity: &Value) -> Kind {
        match entity.get("type").and_then(Value::as_str) {
            Some("person") => Kind::Person,
            Some("article") => Kind::Article,
            Some("research_paper") => Kind::Paper,
            Some("custom") => Kind::Custom,
            _ => Kind::Company,
        }
    }
}

/// The entity a query is after, for requests that do not say.
pub(crate) fn detect(query: &str) -> Value {
    let words = words_of(query);
    let mentions = |stems: &[&str]| {
        words
            .iter()
            .any(|word| stems.iter().any(|stem| word.starts_with(stem)))
    };
    let kind = if mentions(&["compan", "startup", "firm", "business", "vendor"]) {
        "company"
    } else if mentions(&[
        "people",
        "person",
        "founder",
        "engineer",
        "ceo",
        "cto",
        "researcher",
        "scientist",
        "lead",
    ]) {
        "person"
    } else if mentions(&["paper", "stud", "preprint"]) {
        "research_paper"
    } else if mentions(&["article", "news", "post", "blog"]) {
        "article"
    } else {
        "company"
    };
    json!({ "type": kind })
}

/// Properties of the `index`-th entity found for a query.
pub(crate) fn found(seed: u64, kind: Kind, query: &str, index: u64) -> Value {
    let mut dice = Dice::new(seed, &["entity", query, &index.to_string()]);
    match kind {
        Kind::Company => {
            let name = company_name(&mut dice, index);
            let url = format!("https://{}.example/", slug(&name, 4));
            company(&mut dice, &name, &url, query)
        }
        Kind::Person => {
            let name = person(&mut dice);
            let url = format!(
                "https://profiles.example/in/{}-{:x}",
                slug(&name, 3),
                dice.below(1 << 24)
            );
            human(&mut dice, &name, &url, query)
        }
        Kind::Article | Kind::Paper | Kind::Custom => {
            let find = Find {
                query: query.to_owned(),
                ..Find::default()
            };
            let page = find.nth(seed, index);
            let page = page
                .unwrap_or_else(|| Page::at(seed, &format!("https://field-notes.example/{index}")));
            written(kind, &page)
        }
    }
}

/// Properties of an entity known by name or address alone, as a row of an import has it.
pub(crate) fn imported(seed: u64, kind: Kind, identifier: &str) -> Value {
    let mut dice = Dice::new(seed, &["imported", identifier]);
    let is_address =
        identifier.contains("://") || (identifier.contains('.') && !identifier.contains(' '));
    let url = match (is_address, identifier.contains("://")) {
        (true, true) => identifier.to_owned(),
        (true, false) => format!("https://{identifier}/"),
        _ => format!("https://{}.example/", slug(identifier, 6)),
    };
    let url = percent::address(&url);
    let name = if is_address {
        Page::at(seed, &url).title
    } else {
        identifier.to_owned()
    };
    match kind {
        Kind::Company => company(&mut dice, &name, &url, "your import"),
        Kind::Person => human(&mut dice, &name, &url, "your import"),
        _ => written(kind, &Page::at(seed, &url)),
    }
}

/// The number makes names, and so addresses, differ within one search.
fn company_name(dice: &mut Dice, index: u64) -> String {
    let base = format!("{}{}", dice.word(COMPANY_STARTS), dice.word(COMPANY_ENDS));
    if index < 8 {
        base
    } else {
        format!("{base} {}", index + 1)
    }
}

fn company(dice: &mut Dice, name: &str, url: &str, query: &str) -> Value {
    let industry = dice.word(INDUSTRIES);
    let about = format!("{name} is a made-up {} company.", industry.to_lowercase());
    json!({
        "type": "company",
        "url": url,
        "description": format!("{about} It fits: {}.", start_of(query, 200)),
        "content": format!("# {name}\n\n{about}\n"),
        "company": {
            "name": name,
            "location": dice.word(PLACES),
            "employees": dice.between(4, 900),
            "industry": industry,
            "about": about,
            "logoUrl": format!("{}logo.png", slash(url)),
        },
    })
}

fn human(dice: &mut Dice, name: &str, url: &str, query: &str) -> Value {
    let employer = company_name(dice, 0);
    let position = dice.word(POSITIONS);
    let place = dice.word(PLACES);
    json!({
        "type": "person",
        "url": url,
        "description": format!("{name} is a made-up person: {position} at {employer}. Fits: {}.", start_of(query, 200)),
        "person": {
            "name": name,
            "location": place,
            "position": position,
            "company": { "name": employer, "location": place },
            "pictureUrl": null,
        },
    })
}

fn written(kind: Kind, page: &Page) -> Value {
    let about =
        json!({ "title": page.title, "author": page.author, "publishedAt": iso(page.published) });
    let (name, field) = match kind {
        Kind::Paper => ("research_paper", "researchPaper"),
        Kind::Custom => ("custom", "custom"),
        _ => ("article", "article"),
    };
    let mut properties = json!({
        "type": name,
        "url": page.url,
        "description": capital(page.sentences().into_iter().nth(1).unwrap_or_default()),
        "content": page.text(),
    });
    if let Value::Object(map) = &mut properties {
        map.insert(field.to_owned(), about);
    }
    properties
}

fn slash(url: &str) -> String {
    if url.ends_with('/') {
        url.to_owned()
    } else {
        format!("{url}/")
    }
}
