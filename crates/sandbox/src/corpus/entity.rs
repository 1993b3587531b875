//! Properties of companies, people, articles and papers, as webset items contain them.

use serde_json::{Value, json};

use super::page::{Page, person_name};
use super::vocabulary::{COMPANY_ENDS, COMPANY_STARTS, INDUSTRIES, PLACES, POSITIONS};
use super::{PageQuery, capitalize, slug, truncate, words_of};
use crate::percent;
use crate::rng::Rng;
use crate::time::iso;

/// The kind of entity that a webset collects.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum EntityKind {
    Company,
    Person,
    Article,
    Paper,
    Custom,
}

impl EntityKind {
    /// Reads the `type` of an entity in a request.
    pub(crate) fn from_json(entity: &Value) -> EntityKind {
        match entity.get("type").and_then(Value::as_str) {
            Some("person") => EntityKind::Person,
            Some("article") => EntityKind::Article,
            Some("research_paper") => EntityKind::Paper,
            Some("custom") => EntityKind::Custom,
            _ => EntityKind::Company,
        }
    }
}

/// Guesses the entity from a query.
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

/// Returns the properties of the `index`-th entity that matches a query.
pub(crate) fn generate(seed: u64, kind: EntityKind, query: &str, index: u64) -> Value {
    let mut rng = Rng::new(seed, &["entity", query, &index.to_string()]);
    match kind {
        EntityKind::Company => {
            let name = company_name(&mut rng, index);
            let url = format!("https://{}.example/", slug(&name, 4));
            company(&mut rng, &name, &url, query)
        }
        EntityKind::Person => {
            let name = person_name(&mut rng);
            let url = format!(
                "https://profiles.example/in/{}-{:x}",
                slug(&name, 3),
                rng.below(1 << 24)
            );
            person(&mut rng, &name, &url, query)
        }
        EntityKind::Article | EntityKind::Paper | EntityKind::Custom => {
            let page = PageQuery::new(query, 0).nth(seed, index);
            let page = page
                .unwrap_or_else(|| Page::at(seed, &format!("https://field-notes.example/{index}")));
            document(kind, &page)
        }
    }
}

/// Returns the properties of an imported entity, of which only a name or a URL is known.
pub(crate) fn from_identifier(seed: u64, kind: EntityKind, identifier: &str) -> Value {
    let mut rng = Rng::new(seed, &["imported", identifier]);
    let is_url =
        identifier.contains("://") || (identifier.contains('.') && !identifier.contains(' '));
    let url = match (is_url, identifier.contains("://")) {
        (true, true) => identifier.to_owned(),
        (true, false) => format!("https://{identifier}/"),
        _ => format!("https://{}.example/", slug(identifier, 6)),
    };
    let url = percent::encode_url(&url);
    let name = if is_url {
        Page::at(seed, &url).title
    } else {
        identifier.to_owned()
    };
    match kind {
        EntityKind::Company => company(&mut rng, &name, &url, "your import"),
        EntityKind::Person => person(&mut rng, &name, &url, "your import"),
        _ => document(kind, &Page::at(seed, &url)),
    }
}

/// The index makes names, and therefore URLs, unique within a search.
fn company_name(rng: &mut Rng, index: u64) -> String {
    let base = format!("{}{}", rng.choose(COMPANY_STARTS), rng.choose(COMPANY_ENDS));
    if index < 8 {
        base
    } else {
        format!("{base} {}", index + 1)
    }
}

fn company(rng: &mut Rng, name: &str, url: &str, query: &str) -> Value {
    let industry = rng.choose(INDUSTRIES);
    let about = format!("{name} is a made-up {} company.", industry.to_lowercase());
    json!({
        "type": "company",
        "url": url,
        "description": format!("{about} It fits: {}.", truncate(query, 200)),
        "content": format!("# {name}\n\n{about}\n"),
        "company": {
            "name": name,
            "location": rng.choose(PLACES),
            "employees": rng.between(4, 900),
            "industry": industry,
            "about": about,
            "logoUrl": format!("{}logo.png", with_final_slash(url)),
            "foundedYear": rng.between(1990, 2025),
            "headquarters": null,
            "financials": {
                "revenueAnnual": null,
                "fundingTotal": rng.between(1, 90) * 1_000_000,
                "fundingLatestRound": null,
            },
            "webTraffic": { "visitsMonthly": rng.between(500, 900_000), "uniqueVisitors": null },
        },
    })
}

fn person(rng: &mut Rng, name: &str, url: &str, query: &str) -> Value {
    let employer = company_name(rng, 0);
    let position = rng.choose(POSITIONS);
    let place = rng.choose(PLACES);
    json!({
        "type": "person",
        "url": url,
        "description": format!("{name} is a made-up person: {position} at {employer}. Fits: {}.", truncate(query, 200)),
        "person": {
            "name": name,
            "location": place,
            "position": position,
            "company": { "name": employer, "location": place },
            "pictureUrl": null,
            "workHistory": [{
                "title": position,
                "location": place,
                "dates": { "from": "2021-04-01", "to": null },
                "company": { "id": null, "name": employer, "linkedinUrl": null },
            }],
            "educationHistory": [],
        },
    })
}

fn document(kind: EntityKind, page: &Page) -> Value {
    let about =
        json!({ "title": page.title, "author": page.author, "publishedAt": iso(page.published) });
    let (name, field) = match kind {
        EntityKind::Paper => ("research_paper", "researchPaper"),
        EntityKind::Custom => ("custom", "custom"),
        _ => ("article", "article"),
    };
    let mut properties = json!({
        "type": name,
        "url": page.url,
        "description": capitalize(page.sentences().into_iter().nth(1).unwrap_or_default()),
        "content": page.text(),
    });
    if let Value::Object(map) = &mut properties {
        map.insert(field.to_owned(), about);
    }
    properties
}

fn with_final_slash(url: &str) -> String {
    if url.ends_with('/') {
        url.to_owned()
    } else {
        format!("{url}/")
    }
}
