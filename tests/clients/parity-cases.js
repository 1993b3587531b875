// Calls of every method of exa-js that sends a request, with every option of its types and every listed value, and the
// same calls of the server.

import { isDeepStrictEqual } from "node:util";

/** Arguments of a list that is read page by page. */
const page = [[{}], [{ limit: 5 }], [{ cursor: "c:1.x_y-z" }], [{ cursor: "abc", limit: 100 }]];
const BETA = "agent-monitors-2026-08-04";
const meta = { team: "research", "x y": "é" };
const entities = [
  { type: "company" },
  { type: "person" },
  { type: "article" },
  { type: "research_paper" },
  { type: "custom", description: "vineyards" },
];
const eventTypes = [
  "webset.created",
  "webset.deleted",
  "webset.paused",
  "webset.idle",
  "webset.search.created",
  "webset.search.canceled",
  "webset.search.completed",
  "webset.search.updated",
  "import.created",
  "import.completed",
  "webset.item.created",
  "webset.item.enriched",
  "monitor.created",
  "monitor.updated",
  "monitor.deleted",
  "monitor.run.created",
  "monitor.run.completed",
  "webset.export.created",
  "webset.export.completed",
];
const formats = ["text", "date", "number", "options", "email", "phone", "url"];
const schema = {
  type: "object",
  properties: { name: { type: "string", description: "n" }, n: { type: "integer" } },
  required: ["name"],
};
const contents = [
  { text: true },
  { text: { maxCharacters: 500 } },
  { text: { maxCharacters: 500, includeHtmlTags: true, verbosity: "compact" } },
  {
    text: {
      verbosity: "full",
      includeSections: ["body", "header"],
      excludeSections: ["footer", "sidebar"],
    },
  },
  { text: { includeSections: ["unspecified", "navigation", "banner", "metadata"] } },
  { highlights: true },
  { highlights: { query: "q", maxCharacters: 300 } },
  { highlights: { numSentences: 2, highlightsPerUrl: 3, query: "sea" } },
  { highlights: { dynamic: true }, betas: ["dynamic-highlights-2026-08-28"] },
  { summary: true },
  { summary: { query: "what is it" } },
  { summary: { query: "x", schema } },
  { livecrawl: "never", text: true },
  { livecrawl: "fallback", text: true },
  { livecrawl: "always", text: true },
  { livecrawl: "auto", text: true },
  { livecrawl: "preferred", text: true },
  { livecrawlTimeout: 12000, text: true },
  { maxAgeHours: 24, text: true },
  { maxAgeHours: 0, text: true },
  { maxAgeHours: -1, text: true },
  { snapshotAsOf: "2026-01-01T00:00:00Z", text: true },
  { filterEmptyResults: true, text: true },
  { filterEmptyResults: false, text: true },
  { subpages: 3, subpageTarget: "about", text: true },
  { subpages: 2, subpageTarget: ["about", "pricing"], text: true },
  { extras: { links: 5 }, text: true },
  { extras: { imageLinks: 2, links: 1 }, text: true },
  { context: true, text: true },
  { context: { maxCharacters: 2000 }, text: true },
  {
    text: true,
    highlights: { query: "a" },
    summary: { query: "b" },
    subpages: 1,
    extras: { links: 1 },
    livecrawl: "fallback",
  },
];
/** Adds what the SDK requests by default: the text of every page. */
const withText = (o) =>
  o?.contents === false || o?.contents === null
    ? (({ contents, ...r }) => r)(o)
    : { contents: { text: { maxCharacters: 10000 } }, ...o };
const searchOptions = [
  undefined,
  {},
  { contents: false },
  { contents: null },
  ...["keyword", "neural", "auto", "hybrid", "fast", "instant"].map((type) => ({ type })),
  ...["deep-lite", "deep", "deep-reasoning"].map((type) => ({
    type,
    additionalQueries: ["a", "b"],
  })),
  ...["company", "publication", "news", "personal site", "financial report", "people"].map(
    (category) => ({ category }),
  ),
  { numResults: 1 },
  { numResults: 100 },
  { numResults: 25, includeDomains: ["example.com", "*.example.org", "a.b/blog"] },
  { excludeDomains: ["example.com"] },
  { startCrawlDate: "2026-01-01T00:00:00.000Z", endCrawlDate: "2026-02-01T00:00:00.000Z" },
  { startPublishedDate: "2026-01-01T00:00:00.000Z" },
  { startPublishedDate: "2026-01-01" },
  { endPublishedDate: "2026-02-01T00:00:00.000Z" },
  { includeText: ["large language model"] },
  { excludeText: ["course"] },
  { flags: ["a", "b"] },
  { userLocation: "US" },
  { moderation: true },
  { moderation: false },
  { useAutoprompt: true },
  { useAutoprompt: false },
  { systemPrompt: "be brief" },
  { type: "deep", outputSchema: { type: "text", description: "short" } },
  {
    type: "deep",
    outputSchema: { type: "object", properties: { a: { type: "string" } }, required: ["a"] },
  },
  {
    type: "deep-lite",
    systemPrompt: "x",
    outputSchema: { type: "object", properties: {} },
    additionalQueries: ["y"],
  },
  { betas: ["x-beta-2026-01-01"], contents: { text: true } },
  {
    betas: ["dynamic-highlights-2026-08-28", "other-2026-01-01"],
    contents: { highlights: { dynamic: true } },
  },
  ...contents.map(({ betas, ...c }) => ({ contents: c, ...(betas ? { betas } : {}) })),
];
const similar = [
  undefined,
  {},
  { contents: false },
  { numResults: 3 },
  { includeDomains: ["a.com"] },
  { excludeDomains: ["b.com"] },
  { excludeSourceDomain: true },
  { excludeSourceDomain: false },
  { category: "news" },
  { category: "company" },
  { startPublishedDate: "2026-01-01T00:00:00Z", endPublishedDate: "2026-02-01T00:00:00Z" },
  { startCrawlDate: "2026-01-01T00:00:00Z", endCrawlDate: "2026-02-01T00:00:00Z" },
  { includeText: ["x"] },
  { excludeText: ["y"] },
  { flags: ["f"] },
  { userLocation: "DE" },
  { contents: { text: true, highlights: true } },
  { contents: { summary: { query: "q" } } },
];
const monitorSearch = { query: "new drugs" };
const entity = { name: "Exa", domain: "exa.ai" };
const field = { name: "funding", description: "latest round" };
const websetSearches = [
  { query: "banks", count: 5 },
  { query: "banks", count: 1, criteria: [{ description: "in Europe" }] },
  ...entities.map((e) => ({ query: "x", count: 10, entity: e })),
  {
    query: "x",
    count: 2,
    exclude: [
      { source: "import", id: "import_1" },
      { source: "webset", id: "webset_2" },
    ],
  },
  { query: "x", count: 2, scope: [{ source: "webset", id: "webset_2" }] },
  {
    query: "x",
    count: 2,
    scope: [
      { source: "import", id: "import_2", relationship: { definition: "founders of", limit: 3 } },
    ],
  },
  { query: "x", count: 2, recall: true },
  { query: "x", count: 2, recall: false },
  { query: "x", count: 2, maxPeoplePerCompany: 2, entity: { type: "person" } },
];
const enrichments = [
  { description: "CEO" },
  ...formats.filter((f) => f !== "options").map((format) => ({ description: "d", format })),
  { description: "size", format: "options", options: [{ label: "small" }, { label: "large" }] },
  { description: "CEO", metadata: meta },
];
/** A method with the ids of a webset and of something in it. */
const inWebset = (op, method, name) => [
  method,
  op,
  (a, b) => ({ websetId: a, [name]: b }),
  [
    ["ws_1", "id_1"],
    ["my-set", "x-2"],
  ],
];
/** A method with one id. */
const withId = (op, method, name) => [
  method,
  op,
  (a) => ({ [name]: a }),
  [["id_1"], ["0191-abc_def"]],
];
/** Returns the priority as our argument. */
const priority = (o) =>
  o?.headers?.["x-exa-websets-priority"] ? { priority: o.headers["x-exa-websets-priority"] } : {};
/** The method, our operation, our arguments for those of the method, and lists of the latter. */
const table = [
  [
    "search",
    "search",
    (query, o) => ({ query, ...withText(o) }),
    searchOptions.map((o) => (o === undefined ? ["tidal power"] : ["tidal power — 東京", o])),
  ],
  [
    "searchAndContents",
    "search",
    (query, o) => {
      if (!o) return { query, contents: { text: { maxCharacters: 10000 } } };
      const { numResults, category, betas, ...c } = o;
      return {
        query,
        contents: Object.keys(c).some((k) =>
          ["text", "summary", "highlights", "extras"].includes(k),
        )
          ? c
          : { text: true, ...c },
        ...(numResults ? { numResults } : {}),
        ...(category ? { category } : {}),
      };
    },
    [
      ["q"],
      ["q", {}],
      ["q", { text: true, numResults: 3 }],
      ["q", { highlights: true, category: "news" }],
      ["q", { summary: { query: "z" } }],
      ["q", { livecrawl: "always" }],
      ["q", { subpages: 2, subpageTarget: "x" }],
      ["q", { maxAgeHours: 3 }],
      ["q", { snapshotAsOf: "2026-02-02T00:00:00Z" }],
      ["q", { extras: { links: 2 } }],
      ["q", { context: true }],
      ["q", { livecrawlTimeout: 5000 }],
    ],
  ],
  [
    "streamSearch",
    "search",
    (query, o) => ({ query, ...withText(o), stream: true }),
    [
      ["q"],
      ["q", { type: "deep", contents: false }],
      ["q", { numResults: 2, outputSchema: { type: "text" } }],
    ],
  ],
  [
    "findSimilar",
    "find_similar",
    (url, o) => ({ url, ...withText(o) }),
    similar.map((o) => (o === undefined ? ["https://exa.ai"] : ["https://exa.ai/x?y=1", o])),
  ],
  [
    "findSimilarAndContents",
    "find_similar",
    (url, o) => ({ url, contents: o ?? { text: { maxCharacters: 10000 } } }),
    [
      ["https://a.b"],
      ["https://a.b", { text: true }],
      ["https://a.b", { highlights: true, summary: true }],
    ],
  ],
  [
    "getContents",
    "get_contents",
    (urls, o) => ({ urls: [].concat(urls), ...o }),
    [
      ["https://exa.ai"],
      [["https://exa.ai", "https://b.c/d"]],
      [["https://exa.ai"], {}],
      ...contents.map((c) => [["https://exa.ai"], c]),
    ],
  ],
  [
    "answer",
    "answer",
    (query, o) => ({ query, stream: false, text: false, model: "exa", ...o }),
    [
      ["why"],
      ["why", { text: true }],
      ["why", { text: false }],
      ["why", { model: "exa" }],
      ["why", { model: "exa-pro" }],
      ["why", { systemPrompt: "short" }],
      ["why", { outputSchema: schema }],
      ["why", { userLocation: "FR" }],
      ["why", { text: true, systemPrompt: "a", userLocation: "DE", outputSchema: schema }],
    ],
  ],
  [
    "streamAnswer",
    "answer",
    (query, o) => ({ query, stream: true, text: false, model: "exa", ...o }),
    [["why"], ["why", { text: true }], ["why", { outputSchema: schema, systemPrompt: "x" }]],
  ],
  [
    "research.create",
    "research.create",
    (o) => ({ model: "exa-research-fast", ...o }),
    [
      [{ instructions: "x" }],
      [{ instructions: "x", model: "exa-research" }],
      [{ instructions: "x", model: "exa-research-pro" }],
      [{ instructions: "x", outputSchema: schema }],
    ],
  ],
  [
    "research.get",
    "research.get",
    (researchId, o) => ({
      researchId,
      stream: o?.stream ?? false,
      ...(o?.events === undefined ? {} : { events: o.events }),
    }),
    [
      ["r_1"],
      ["r_1", {}],
      ["r_1", { events: true }],
      ["r_1", { events: false }],
      ["r_1", { stream: true }],
      ["r_1", { stream: true, events: true }],
    ],
  ],
  ["research.list", "research.list", (o) => ({ ...o }), [[], ...page]],
  [
    "monitors.create",
    "search_monitors.create",
    (o) => o,
    [
      [{ search: monitorSearch, webhook: { url: "https://a.b/hook" } }],
      [{ name: "n", search: monitorSearch, webhook: { url: "https://a.b/hook" } }],
      [
        {
          search: { query: "x", numResults: 5 },
          webhook: { url: "https://a.b/hook", events: ["monitor.run.completed"] },
        },
      ],
      [{ search: { query: "x", includeDomains: ["a.com"] }, webhook: { url: "https://a.b" } }],
      [{ search: { query: "x", excludeDomains: ["a.com"] }, webhook: { url: "https://a.b" } }],
      [{ search: { query: "x", contents: { text: true } }, webhook: { url: "https://a.b" } }],
      [
        {
          search: {
            query: "x",
            contents: { highlights: { maxCharacters: 100 }, summary: { query: "q" } },
          },
          webhook: { url: "https://a.b" },
        },
      ],
      [
        {
          search: monitorSearch,
          trigger: { type: "interval", period: "6h" },
          webhook: { url: "https://a.b" },
        },
      ],
      [
        {
          search: monitorSearch,
          trigger: { type: "interval", period: "7d" },
          webhook: { url: "https://a.b" },
        },
      ],
      [{ search: monitorSearch, outputSchema: schema, webhook: { url: "https://a.b" } }],
      [{ search: monitorSearch, metadata: meta, webhook: { url: "https://a.b" } }],
      [
        {
          search: monitorSearch,
          webhook: {
            url: "https://a.b",
            events: [
              "monitor.created",
              "monitor.updated",
              "monitor.deleted",
              "monitor.run.created",
              "monitor.run.completed",
            ],
          },
        },
      ],
    ],
  ],
  withId("search_monitors.get", "monitors.get", "monitorId"),
  withId("search_monitors.delete", "monitors.delete", "monitorId"),
  withId("search_monitors.trigger", "monitors.trigger", "monitorId"),
  [
    "monitors.list",
    "search_monitors.list",
    (o) => ({ ...o }),
    [
      [],
      ...page,
      [{ status: "active" }],
      [{ status: "paused", limit: 2 }],
      [{ status: "disabled" }],
    ],
  ],
  [
    "monitors.update",
    "search_monitors.update",
    (monitorId, o) => ({ monitorId, ...o }),
    [
      ["m", { name: "x" }],
      ["m", { name: null }],
      ["m", { status: "paused" }],
      ["m", { status: "active" }],
      ["m", { search: { query: "y" } }],
      ["m", { trigger: null }],
      ["m", { trigger: { type: "interval", period: "1d" } }],
      ["m", { outputSchema: null }],
      ["m", { outputSchema: schema }],
      ["m", { metadata: null }],
      ["m", { metadata: meta }],
      ["m", { webhook: { url: "https://c.d" } }],
      ["m", { webhook: { url: "https://c.d", events: ["monitor.updated"] } }],
    ],
  ],
  [
    "monitors.runs.list",
    "search_monitors.runs.list",
    (monitorId, o) => ({ monitorId, ...o }),
    [["m"], ...page.map(([o]) => ["m", o])],
  ],
  [
    "monitors.runs.get",
    "search_monitors.runs.get",
    (monitorId, runId) => ({ monitorId, runId }),
    [
      ["m", "r"],
      ["a-b", "c_d"],
    ],
  ],
  [
    "agent.runs.create",
    "agent.runs.create",
    (o) => o,
    [
      [{ query: "x" }],
      [{ query: "x", systemPrompt: "y" }],
      ...["minimal", "low", "medium", "high", "xhigh", "auto", "ultra", "max"].map((effort) => [
        { query: "x", effort },
      ]),
      [{ query: "x", input: { data: [{ a: 1 }, { b: "c" }] } }],
      [{ query: "x", input: { exclusion: [{ url: "https://a.b" }] } }],
      [{ query: "x", input: { data: [{ a: null }], note: "open" } }],
      [{ query: "x", outputSchema: schema }],
      [{ query: "x", effort: "auto", budget: { maxCostDollars: 2.5 } }],
      [{ query: "x", effort: "ultra", budget: { maxCostDollars: 20, maxDurationSeconds: 600 } }],
      [{ query: "x", previousRunId: "run_1" }],
      [{ query: "x", metadata: { a: "b" } }],
      [{ query: "x", metadata: { a: 1, b: { c: true } } }],
      ...[
        "fiber_ai",
        "financial_datasets",
        "similarweb",
        "baselayer",
        "affiliate",
        "particle_news",
        "jinko",
        "fiber",
        "polymarket",
      ].map((provider) => [{ query: "x", dataSources: [{ provider }] }]),
      [{ query: "x", dataSources: [{ provider: "similarweb" }, { provider: "jinko" }] }],
    ],
  ],
  [
    "agent.runs.create",
    "agent.runs.create",
    (o) => o,
    [
      [{ query: "x", stream: true }],
      [{ query: "x", stream: true, effort: "low", outputSchema: schema }],
    ],
  ],
  withId("agent.runs.get", "agent.runs.get", "runId"),
  withId("agent.runs.cancel", "agent.runs.cancel", "runId"),
  withId("agent.runs.stop", "agent.runs.stop", "runId"),
  withId("agent.runs.delete", "agent.runs.delete", "runId"),
  ["agent.runs.list", "agent.runs.list", (o) => ({ ...o }), [[], ...page]],
  [
    "agent.runs.events.list",
    "agent.runs.events.list",
    (runId, o) => ({ runId, ...o }),
    [["r"], ...page.map(([o]) => ["r", o])],
  ],
  [
    "beta.agent.runs.create",
    "agent.runs.create",
    (o) => o,
    [
      [{ query: "x", betas: ["agent-2026-05-07"] }],
      [{ query: "x", effort: "max", betas: ["agent-max-effort-2026-07-27"] }],
      [{ query: "x", betas: ["a-2026-01-01", "b-2026-01-01"] }],
    ],
  ],
  [
    "beta.agent.runs.get",
    "agent.runs.get",
    (runId, o) => ({ runId, ...o }),
    [["r"], ["r", { betas: ["agent-2026-05-07"] }]],
  ],
  [
    "beta.agent.runs.list",
    "agent.runs.list",
    (o) => o,
    [[{ limit: 2, betas: ["agent-2026-05-07"] }]],
  ],
  [
    "beta.agent.runs.cancel",
    "agent.runs.cancel",
    (runId, o) => ({ runId, ...o }),
    [["r", { betas: ["agent-2026-05-07"] }]],
  ],
  [
    "beta.agent.runs.stop",
    "agent.runs.stop",
    (runId, o) => ({ runId, ...o }),
    [
      ["r"],
      ["r", { betas: ["agent-max-effort-2026-07-27"] }],
      ["r", { betas: ["agent-2026-05-07"] }],
    ],
  ],
  [
    "beta.agent.runs.delete",
    "agent.runs.delete",
    (runId, o) => ({ runId, ...o }),
    [["r", { betas: ["agent-2026-05-07"] }]],
  ],
  [
    "beta.agent.runs.events.list",
    "agent.runs.events.list",
    (runId, o) => ({ runId, ...o }),
    [["r", { cursor: "x", betas: ["agent-2026-05-07"] }]],
  ],
  [
    "beta.agent.monitors.create",
    "agent.monitors.create",
    ({ betas, ...o }, p) => ({ ...o, ...(betas.length > 1 ? { betas } : {}), ...p }),
    [
      [{ cadence: "12h", entities: [entity], fields: [field], betas: [BETA] }],
      [
        {
          cadence: "7d",
          entities: [{ ...entity, description: "the search one" }],
          fields: [field],
          betas: [BETA],
        },
      ],
      ...["string", "number", "boolean", "date", "url", "email", "phone", "static", "dynamic"].map(
        (type) => [
          { cadence: "1d", entities: [entity], fields: [{ ...field, type }], betas: [BETA] },
        ],
      ),
      [
        {
          cadence: "1d",
          entities: [entity],
          fields: [{ ...field, mode: "static" }],
          betas: [BETA],
        },
      ],
      [
        {
          cadence: "1d",
          entities: [entity],
          fields: [{ ...field, mode: "dynamic" }],
          betas: [BETA],
        },
      ],
      [
        { cadence: "1d", entities: [entity], fields: [field], betas: [BETA] },
        { idempotencyKey: "key-1" },
      ],
      [{ cadence: "1d", entities: [entity], fields: [field], betas: [BETA, "more-2026-01-01"] }],
    ],
  ],
  [
    "beta.agent.monitors.get",
    "agent.monitors.get",
    (monitorId) => ({ monitorId }),
    [["m", { betas: [BETA] }]],
  ],
  [
    "beta.agent.monitors.list",
    "agent.monitors.list",
    ({ betas, ...o }) => o,
    page.map(([o]) => [{ ...o, betas: [BETA] }]),
  ],
  [
    "beta.agent.monitors.delete",
    "agent.monitors.delete",
    (monitorId) => ({ monitorId }),
    [["m", { betas: [BETA] }]],
  ],
  [
    "beta.agent.monitors.entities.add",
    "agent.monitors.entities.add",
    (monitorId, { betas, ...o }) => ({ monitorId, ...o }),
    [
      ["m", { entities: [entity], betas: [BETA] }],
      ["m", { entities: [entity, { name: "B", domain: "b.c", description: "d" }], betas: [BETA] }],
    ],
  ],
  [
    "beta.agent.monitors.entities.list",
    "agent.monitors.entities.list",
    (monitorId, { betas, ...o }) => ({ monitorId, ...o }),
    [
      ...page.map(([o]) => ["m", { ...o, betas: [BETA] }]),
      ["m", { since: "2026-01-01T00:00:00Z", betas: [BETA] }],
    ],
  ],
  [
    "beta.agent.monitors.changes.list",
    "agent.monitors.changes.list",
    (monitorId, { betas, ...o }) => ({ monitorId, ...o }),
    [
      ...page.map(([o]) => ["m", { ...o, betas: [BETA] }]),
      ["m", { since: "2026-01-01T00:00:00.000Z", betas: [BETA] }],
    ],
  ],
  [
    "beta.agent.monitors.backtests.create",
    "agent.monitors.backtests.create",
    ({ betas, ...o }) => o,
    [
      [
        {
          entities: [entity],
          fields: [field],
          startTime: "2026-01-01T00:00:00Z",
          endTime: "2026-02-01T00:00:00Z",
          betas: [BETA],
        },
      ],
    ],
  ],
  [
    "beta.agent.monitors.backtests.get",
    "agent.monitors.backtests.get",
    (backtestId) => ({ backtestId }),
    [["b", { betas: [BETA] }]],
  ],
  [
    "websets.create",
    "websets.create",
    (o, p) => ({ ...o, ...priority(p) }),
    [
      ...websetSearches.map((search) => [{ search }]),
      ...["low", "medium", "high"].map((p) => [
        { search: websetSearches[0] },
        { headers: { "x-exa-websets-priority": p } },
      ]),
      [{ externalId: "mine", search: websetSearches[0] }],
      [{ metadata: meta, search: websetSearches[0] }],
      [
        {
          import: [
            { source: "import", id: "i" },
            { source: "webset", id: "w" },
          ],
        },
      ],
      [{ exclude: [{ source: "webset", id: "w" }], search: websetSearches[0] }],
      [{ search: websetSearches[0], enrichments }],
      ...enrichments.map((e) => [{ search: websetSearches[0], enrichments: [e] }]),
      [{}],
    ],
  ],
  [
    "websets.preview",
    "websets.preview",
    ({ search }, o) => (o?.search === undefined ? { search } : { search, withItems: o.search }),
    [
      [{ search: { query: "x", count: 3 } }],
      [{ search: { query: "x", count: 3, entity: { type: "company" } } }],
      [
        { search: { query: "x", count: 3, entity: { type: "custom", description: "vineyards" } } },
        { search: true },
      ],
      [{ search: { query: "x", count: 3 } }, { search: false }],
    ],
  ],
  [
    "websets.get",
    "websets.get",
    (websetId, expand) => ({ websetId, ...(expand ? { expand } : {}) }),
    [["w"], ["w", ["items"]]],
  ],
  ["websets.list", "websets.list", (o) => ({ ...o }), [[], ...page]],
  [
    "websets.update",
    "websets.update",
    (websetId, o) => ({ websetId, ...o }),
    [
      ["w", { metadata: meta }],
      ["w", { metadata: null }],
    ],
  ],
  withId("websets.delete", "websets.delete", "websetId"),
  withId("websets.cancel", "websets.cancel", "websetId"),
  [
    "websets.items.list",
    "items.list",
    (websetId, o) => ({ websetId, ...o }),
    [
      ["w"],
      ...page.map(([o]) => ["w", o]),
      ["w", { sourceId: "s" }],
      ["w", { sourceId: "s", limit: 20 }],
    ],
  ],
  inWebset("items.get", "websets.items.get", "itemId"),
  inWebset("items.delete", "websets.items.delete", "itemId"),
  [
    "websets.searches.create",
    "searches.create",
    (websetId, o, p) => ({ websetId, ...o, ...priority(p) }),
    [
      ...websetSearches.map((s) => ["w", { ...s, behavior: "append" }]),
      ["w", { ...websetSearches[0], behavior: "override" }],
      ["w", { ...websetSearches[0], behavior: "append", metadata: meta }],
      [
        "w",
        { ...websetSearches[0], behavior: "append" },
        { headers: { "x-exa-websets-priority": "high" } },
      ],
    ],
  ],
  inWebset("searches.get", "websets.searches.get", "searchId"),
  inWebset("searches.cancel", "websets.searches.cancel", "searchId"),
  [
    "websets.enrichments.create",
    "enrichments.create",
    (websetId, o) => ({ websetId, ...o }),
    enrichments.map((e) => ["w", e]),
  ],
  inWebset("enrichments.get", "websets.enrichments.get", "enrichmentId"),
  inWebset("enrichments.delete", "websets.enrichments.delete", "enrichmentId"),
  inWebset("enrichments.cancel", "websets.enrichments.cancel", "enrichmentId"),
  [
    "websets.enrichments.update",
    "enrichments.update",
    (websetId, enrichmentId, o) => ({ websetId, enrichmentId, ...o }),
    [
      ["w", "e", { description: "x" }],
      ...formats.map((format) => ["w", "e", { format }]),
      ["w", "e", { metadata: null }],
      ["w", "e", { metadata: meta }],
      ["w", "e", { options: [{ label: "a" }], format: "options" }],
    ],
  ],
  [
    "websets.monitors.create",
    "monitors.create",
    (o) => o,
    [
      [
        {
          websetId: "w",
          cadence: { cron: "0 9 * * 1", timezone: "Etc/UTC" },
          behavior: { type: "search", config: { behavior: "append", count: 5 } },
        },
      ],
      [
        {
          websetId: "w",
          cadence: { cron: "0 9 * * *", timezone: "Europe/Berlin" },
          behavior: {
            type: "search",
            config: {
              behavior: "override",
              count: 5,
              query: "banks",
              criteria: [{ description: "in Europe" }],
              entity: { type: "company" },
            },
          },
        },
      ],
      [
        {
          websetId: "w",
          cadence: { cron: "0 9 1 * *", timezone: "America/New_York" },
          behavior: {
            type: "search",
            config: {
              behavior: "append",
              count: 5,
              query: "banks",
              entity: { type: "custom", description: "vineyards" },
            },
          },
          metadata: meta,
        },
      ],
    ],
  ],
  withId("monitors.get", "websets.monitors.get", "monitorId"),
  withId("monitors.delete", "websets.monitors.delete", "monitorId"),
  ["websets.monitors.list", "monitors.list", (o) => ({ ...o }), [[], ...page, [{ websetId: "w" }]]],
  [
    "websets.monitors.update",
    "monitors.update",
    (monitorId, o) => ({ monitorId, ...o }),
    [
      ["m", { status: "enabled" }],
      ["m", { status: "disabled" }],
      ["m", { metadata: meta }],
      ["m", { cadence: { cron: "0 9 * * 1", timezone: "Etc/UTC" } }],
      ["m", { behavior: { type: "search", config: { behavior: "append", count: 5 } } }],
    ],
  ],
  [
    "websets.monitors.runs.list",
    "monitors.runs.list",
    (monitorId, o) => ({ monitorId, ...o }),
    [["m"], ...page.map(([o]) => ["m", o])],
  ],
  [
    "websets.monitors.runs.get",
    "monitors.runs.get",
    (monitorId, runId) => ({ monitorId, runId }),
    [["m", "r"]],
  ],
  [
    "websets.webhooks.create",
    "webhooks.create",
    (o) => o,
    [
      ...eventTypes.map((e) => [{ events: [e], url: "https://a.b/c" }]),
      [{ events: eventTypes.slice(0, 5), url: "https://a.b/c?d=e", metadata: meta }],
    ],
  ],
  withId("webhooks.get", "websets.webhooks.get", "webhookId"),
  withId("webhooks.delete", "websets.webhooks.delete", "webhookId"),
  ["websets.webhooks.list", "webhooks.list", (o) => ({ ...o }), [[], ...page]],
  [
    "websets.webhooks.update",
    "webhooks.update",
    (webhookId, o) => ({ webhookId, ...o }),
    [
      ["h", { url: "https://c.d" }],
      ["h", { events: ["webset.idle"] }],
      ["h", { metadata: meta }],
    ],
  ],
  [
    "websets.webhooks.listAttempts",
    "webhooks.list_attempts",
    (webhookId, o) => ({ webhookId, ...o }),
    [
      ["h"],
      ...page.map(([o]) => ["h", o]),
      ["h", { eventType: "webset.idle" }],
      ["h", { successful: true }],
      ["h", { successful: false }],
      ["h", { eventType: "webset.export.created", successful: true }],
    ],
  ],
  [
    "websets.imports.create",
    "imports.create",
    (o) => o,
    [
      ...entities.map((e) => [{ title: "t", format: "csv", entity: e, size: 100, count: 3 }]),
      [{ title: "t", format: "csv", entity: entities[0], size: 100, count: 3, metadata: meta }],
      [
        {
          title: "t",
          format: "csv",
          entity: entities[0],
          size: 100,
          count: 3,
          csv: { identifier: 0 },
        },
      ],
      [{ format: "csv", entity: entities[0], size: 100, count: 3, csv: { identifier: 2 } }],
    ],
  ],
  [
    "websets.imports.create",
    "imports.create",
    (o, csv) => ({ ...o, csvContent: String(csv) }),
    [
      [{ title: "t", entity: entities[0] }, "name,url\nExa,https://exa.ai\n"],
      [
        { title: "t", entity: entities[0], metadata: meta, csv: { identifier: 1 } },
        'name,url\nExa,https://exa.ai\n"a, b",https://é.ai\n',
      ],
    ],
  ],
  withId("imports.get", "websets.imports.get", "importId"),
  withId("imports.delete", "websets.imports.delete", "importId"),
  ["websets.imports.list", "imports.list", (o) => ({ ...o }), [[], ...page]],
  [
    "websets.imports.update",
    "imports.update",
    (importId, o) => ({ importId, ...o }),
    [
      ["i", { title: "t" }],
      ["i", { metadata: meta }],
    ],
  ],
  withId("events.get", "websets.events.get", "eventId"),
  [
    "websets.events.list",
    "events.list",
    (o) => ({ ...o }),
    [
      [],
      ...page,
      [{ types: ["webset.idle"] }],
      [{ types: ["webset.idle", "webset.item.created"], limit: 2 }],
      [{ types: ["webset.export.completed"] }],
    ],
  ],
];

/** Returns every call of the SDK with ours. */
export function cases() {
  return table.flatMap(([method, operation, arguments_, lists]) =>
    lists.map((call) => ({ method, operation, call, own: arguments_(...structuredClone(call)) })),
  );
}

const sdkBody = ({ sdk }, name) => sdk.body?.[name];
const isRefused = ({ sent }, text) => typeof sent === "string" && sent.includes(text);
const MAX_EFFORT = "agent-max-effort-2026-07-27";
const sendsToken = ({ sent }) => sent.headers?.["exa-beta"]?.includes(MAX_EFFORT);

/** The differences that are meant: to which calls they apply, and how they show. */
export const differences = [
  {
    reason: "`auto` has replaced these types, which the spec does not have",
    applies: (found) => ["keyword", "neural"].includes(sdkBody(found, "type")),
    shows: ({ sdk, sent }) => isDeepStrictEqual({ ...sdk.body, type: "auto" }, sent.body),
  },
  {
    reason: "the spec wants a date and a time",
    applies: (found) => sdkBody(found, "startPublishedDate") === "2026-01-01",
    shows: ({ sent }) => sent.body?.startPublishedDate === "2026-01-01T00:00:00Z",
  },
  {
    reason: "the token of this effort is sent unasked",
    applies: ({ operation, own }) => operation === "agent.runs.create" && own.effort === "max",
    shows: sendsToken,
  },
  {
    reason: "only runs of the efforts that need this token can be stopped",
    applies: ({ operation }) => operation === "agent.runs.stop",
    shows: sendsToken,
  },
  {
    reason: "the spec takes only texts as metadata of a run",
    applies: ({ operation, own }) => operation === "agent.runs.create" && own.metadata?.b?.c,
    shows: (found) => isRefused(found, "`metadata.b` must be a string"),
  },
  {
    reason: "the format `options` is useless without options",
    applies: ({ operation, own }) =>
      operation === "enrichments.update" && own.format === "options" && !own.options,
    shows: (found) => isRefused(found, "`options` must hold 1 to 150 labels"),
  },
];
