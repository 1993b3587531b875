//! An MCP server for the Exa API, generated from Exa's OpenAPI specs.

pub mod exa;
