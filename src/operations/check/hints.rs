//! What often goes wrong with an operation.

const ENTITY: &str = "`entity` is an object: {\"type\": \"company\"}; the types are company, person, article, research_paper and custom";
const CUSTOM: &str = "the entity type `custom` needs a `description`: {\"type\": \"custom\", \"description\": \"open-source databases\"}";
const CRITERIA: &str =
    "`criteria` is a list of 1 to 5 objects: [{\"description\": \"raised a Series A after 2023\"}]";
const OPTIONS: &str = "the format `options` needs `options`, a list of 1 to 150 objects: [{\"label\": \"yes\"}, {\"label\": \"no\"}]";
const CRON: &str =
    "`cadence.cron` has exactly five fields and no seconds: \"0 9 * * 1\" means Mondays at nine";
const TIME_ZONE: &str = "`cadence.timezone` is an IANA name such as Europe/Berlin, not an offset";
const SCOPE: &str =
    "`scope` and `exclude` are lists of objects: [{\"source\": \"webset\", \"id\": \"ws_123\"}]";

/// What often goes wrong with `operation`; nothing where nothing is known to.
pub fn hints(operation: &str) -> &'static [&'static str] {
    match operation {
        "searches.create" => &[
            CRITERIA,
            ENTITY,
            CUSTOM,
            "`count` is required and a whole number of at least 1",
            "`behavior` is `override` (default) or `append`",
            SCOPE,
        ],
        "websets.create" => &[
            "the search goes into `search`: {\"search\": {\"query\": \"AI startups in Berlin\", \"count\": 10}}",
            CRITERIA,
            ENTITY,
            CUSTOM,
            "`enrichments` is a list of objects: [{\"description\": \"CEO's work email\", \"format\": \"email\"}]",
            OPTIONS,
        ],
        "websets.preview" => &[
            "the search goes into `search`: {\"search\": {\"query\": \"AI startups in Berlin\"}}",
            ENTITY,
        ],
        "enrichments.create" | "enrichments.update" => &[
            "`format` is text, date, number, options, email, phone or url",
            OPTIONS,
        ],
        "monitors.create" | "monitors.update" => &[
            CRON,
            TIME_ZONE,
            "`behavior` is {\"type\": \"search\", \"config\": {\"count\": 10}}; without a query the latest search of the webset is repeated",
        ],
        "imports.create" => &[
            "pass the file as `csvContent` (text) or `filePath`; then `size`, `count` and `format` can be left out",
            ENTITY,
            "`count` is the number of records without the header row, `size` the number of bytes, at most 50000000",
        ],
        "webhooks.create" | "webhooks.update" => &[
            "`events` is a list of event types such as webset.item.created",
            "`url` is a public address that starts with https://",
        ],
        "search" => &[
            "how contents are returned goes into `contents`: {\"contents\": {\"highlights\": true}}",
            "dates are written 2026-01-31T00:00:00Z",
            "`includeDomains` and `excludeDomains` are lists: [\"example.com\"]",
        ],
        "find_similar" => &[
            "`url` is the whole address of a page, with https://",
            "how contents are returned goes into `contents`: {\"contents\": {\"highlights\": true}}",
        ],
        "get_contents" => &[
            "`urls` is a list of whole addresses: [\"https://example.com\"]",
            "`text`, `highlights` and `summary` stand beside `urls`, not in `contents`",
        ],
        "agent.monitors.create" => &[
            "`cadence` is a number and h or d, at least 6h: \"12h\", \"7d\"",
            "`entities` is a list of {\"name\", \"domain\"}, `fields` a list of {\"name\", \"description\"}",
        ],
        "search_monitors.create" | "search_monitors.update" => &[
            "the query goes into `search`: {\"search\": {\"query\": \"new AI chips\"}}",
            "`trigger` is {\"type\": \"interval\", \"period\": \"1d\"}, at least 1h",
            "`webhook` is {\"url\": \"https://…\"}",
        ],
        _ => &[],
    }
}
