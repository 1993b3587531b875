// The compared servers: how each is started, and which call is its search.
import { join } from "node:path";
import { fileURLToPath } from "node:url";

const here = (path) => fileURLToPath(new URL(`../${path}`, import.meta.url));

const SEARCH = ["web_search_exa", { query: "fusion energy companies", numResults: 10 }];
// Without `fresh`, our server would return the cached result of the same search.
const FRESH = ["web_search_exa", { ...SEARCH[1], fresh: true }];
const KEY = { EXA_API_KEY: "bench-key" };

export const OFFICIAL = here("node_modules/exa-mcp-server/dist/stdio.cjs");

const OFFICIAL_TOOLS = [
  "web_search_exa", "web_search_advanced_exa", "company_research_exa", "web_fetch_exa", "crawling_exa",
  "people_search_exa", "linkedin_search_exa", "deep_researcher_start", "deep_researcher_check",
  "get_code_context_exa", "deep_search_exa", "agent_run",
];

/** Our server with a set of tools. */
export const ours = (release, set = "default") => ({
  name: `ours, ${set}`,
  command: [join(release, "exa-mcp-server")],
  env: { ...KEY, ENABLED_TOOLS: set },
});

/** An rmcp server that is built for the fastest start: one thread, no unwinding, its own pipes. */
export const floor = (release) => ({ name: "floor", command: [join(release, "floor")], env: {} });

/** An ordinary small rmcp server, built with our profile. */
export const minimal = (release) => ({ name: "minimal", command: [join(release, "minimal")], env: {} });

/** The official server as its package starts it, with its default tools or all. */
export const official = (all = false) => ({
  name: all ? "official, all" : "official, default",
  command: [process.execPath, OFFICIAL],
  env: { ...KEY, ...(all && { ENABLED_TOOLS: OFFICIAL_TOOLS.join() }) },
});

/** Our server and the official one with a backend, and with a search as the call. */
export function withSearchCall(release, backend) {
  const us = ours(release);
  const them = official();
  return [
    { ...us, call: FRESH, env: { ...us.env, EXA_BASE_URL: backend } },
    {
      ...them,
      call: SEARCH,
      command: [process.execPath, "--import", here("redirect.mjs"), OFFICIAL],
      env: { ...them.env, BENCH_BACKEND: backend },
    },
  ];
}

/** Our server with a backend and a cache of this size. */
export function withCache(release, backend, bytes) {
  const us = ours(release);
  return { ...us, env: { ...us.env, EXA_BASE_URL: backend, EXA_MCP_CACHE_BYTES: String(bytes) } };
}

/** The floor with its only tool, which needs no backend. */
export const withHelloCall = (release) => ({ ...floor(release), call: ["hello", {}] });
