// Preloaded into the official server, which always calls https://api.exa.ai: sends those calls to
// BENCH_BACKEND instead. Nothing else may leave the machine: its analytics posts, the only use it makes
// of `https`, fail at once, which costs it less than any answer would.
import https from "node:https";

const backend = process.env.BENCH_BACKEND;
const send = globalThis.fetch;

globalThis.fetch = (address, options) => {
  const url = new URL(address);
  if (url.host !== "api.exa.ai") throw new Error(`the benchmark does not reach ${url.host}`);
  return send(backend + url.pathname + url.search, options);
};

https.request = ({ hostname }) => {
  throw new Error(`the benchmark does not reach ${hostname}`);
};
