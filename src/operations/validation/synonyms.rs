//! Other names that models use for common arguments.

use super::names;

/// Names with the same meaning. An operation has at most one or two of a group.
const GROUPS: [&[&str]; 9] = [
    &[
        "query",
        "instructions",
        "objective",
        "companyName",
        "q",
        "question",
        "prompt",
        "task",
        "topic",
        "searchQuery",
        "queryText",
        "company",
        "keywords",
    ],
    &[
        "urls", "url", "uri", "link", "links", "website", "webpage", "pageUrl", "address",
    ],
    &[
        "startPublishedDate",
        "createdAfter",
        "startDate",
        "start",
        "fromDate",
        "dateFrom",
        "since",
        "afterDate",
        "publishedAfter",
        "minDate",
        "start_published",
    ],
    &[
        "endPublishedDate",
        "createdBefore",
        "endDate",
        "end",
        "toDate",
        "dateTo",
        "until",
        "beforeDate",
        "publishedBefore",
        "maxDate",
        "end_published",
    ],
    &[
        "numResults",
        "limit",
        "count",
        "num",
        "n",
        "k",
        "topK",
        "topN",
        "maxResults",
        "numberOfResults",
        "resultCount",
        "resultsCount",
        "pageSize",
        "perPage",
        "maxItems",
    ],
    &[
        "includeDomains",
        "domains",
        "domain",
        "site",
        "sites",
        "allowedDomains",
    ],
    &[
        "excludeDomains",
        "blockedDomains",
        "excludedDomains",
        "excludeSites",
    ],
    &["outputSchema", "schema", "jsonSchema", "responseSchema"],
    &[
        "maxCharacters",
        "maxChars",
        "textMaxCharacters",
        "maxLength",
        "characterLimit",
    ],
];

/// Values with the same meaning, which differ between operations and versions of the API.
const VALUES: [&[&str]; 5] = [
    &[
        "publication",
        "research_paper",
        "research paper",
        "paper",
        "papers",
        "academic paper",
        "scientific paper",
    ],
    &[
        "people",
        "person",
        "profile",
        "linkedin profile",
        "linkedin",
    ],
    &[
        "company",
        "companies",
        "organization",
        "business",
        "startup",
    ],
    &["news", "news article", "news articles"],
    // Former kinds of search, between which `auto` chose.
    &["auto", "neural", "keyword"],
];

/// Returns the listed value that another one stands for.
pub(super) fn meant_value<'n>(
    given: &str,
    mut listed: impl Iterator<Item = &'n str>,
) -> Option<&'n str> {
    let wanted = names::normalize(given);
    let is_same = |other: &&str| names::normalize(other) == wanted;
    let group = VALUES.iter().find(|group| group.iter().any(is_same))?;
    listed.find(|value| group.contains(value))
}

/// Returns other words for the listed values, each with its value.
pub(crate) fn of_values<'n>(listed: &[&'n str]) -> Vec<(&'static str, &'n str)> {
    let others = VALUES.iter().filter_map(|group| {
        let value = listed.iter().find(|value| group.contains(value))?;
        Some(group.iter().map(move |other| (*other, *value)))
    });
    others
        .flatten()
        .filter(|(other, _)| !listed.contains(other))
        .collect()
}

/// Returns the argument that another name stands for: one of `names` that `is_free` accepts, in the order of `names`.
pub(super) fn meant<'n>(
    given: &str,
    names: impl Iterator<Item = &'n str>,
    is_free: impl Fn(&str) -> bool,
) -> Option<&'n str> {
    let is_in = |group: &&[&str], name: &str| names::variant(name, group.iter().copied()).is_some();
    let group = GROUPS.iter().find(|group| is_in(group, given))?;
    let mut names = names;
    names.find(|name| is_in(group, name) && is_free(name))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn finds_the_value_of_the_operation() {
        let categories = ["company", "publication", "news", "people"];
        let find = |given: &str| meant_value(given, categories.into_iter());
        assert_eq!(find("research paper"), Some("publication"));
        assert_eq!(find("Person"), Some("people"));
        assert_eq!(find("sports"), None);
        let kinds = ["instant", "fast", "auto", "deep"];
        assert_eq!(meant_value("neural", kinds.into_iter()), Some("auto"));
        assert_eq!(
            meant_value("people", ["person"].into_iter()),
            Some("person")
        );
        assert!(of_values(&categories).contains(&("linkedin profile", "people")));
        assert_eq!(of_values(&["fast", "deep"]), []);
    }

    #[test]
    fn finds_the_argument_of_the_operation() {
        let find =
            |given: &str, names: &[&'static str]| meant(given, names.iter().copied(), |_| true);
        assert_eq!(find("q", &["numResults", "query"]), Some("query"));
        assert_eq!(
            find("task", &["model", "instructions"]),
            Some("instructions")
        );
        assert_eq!(find("url", &["urls"]), Some("urls"));
        assert_eq!(
            find("start_date", &["startPublishedDate"]),
            Some("startPublishedDate")
        );
        assert_eq!(find("StartDate", &["createdAfter"]), Some("createdAfter"));
        assert_eq!(find("q", &["id"]), None);
        assert_eq!(find("unknown", &["query"]), None);
        let taken = meant("q", ["query"].into_iter(), |name| name != "query");
        assert_eq!(taken, None);
    }
}
