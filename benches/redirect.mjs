// Preloaded into the official server, which always calls https://api.exa.ai: redirects those calls to
// BENCH_BACKEND. Other requests fail: its analytics posts, its only use of `https`, fail at once, which
// costs it less than any response would.
import https from "node:https";

const backend = process.env.BENCH_BACKEND;
const send = globalThis.fetch;

globalThis.fetch = (address, options) => {
  const url = new URL(address);
  if (url.host !== "api.exa.ai") throw new Error(`the benchmark blocks requests to ${url.host}`);
  return send(backend + url.pathname + url.search, options);
};

https.request = ({ hostname }) => {
  throw new Error(`the benchmark blocks requests to ${hostname}`);
};
