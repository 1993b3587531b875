//! What the handler needs of the surface.

use std::future::Future;

use rmcp::model::JsonObject;

use crate::surface::library::Library;
use crate::surface::{Call, Catalogue, Outcome, ToolDefinition};

/// A set of tools. The server has one, the tests another.
pub(super) trait Tools: Clone + Send + Sync + 'static {
    /// What a model should know before it uses the tools.
    fn instructions(&self) -> String;

    /// The tools in the order in which they are listed.
    fn definitions(&self) -> Vec<ToolDefinition>;

    /// Says whether there is a tool of this name.
    fn has(&self, name: &str) -> bool;

    /// What can be read beside calling tools, if anything.
    fn library(&self) -> Option<&Library> {
        None
    }

    /// How to call an operation of Exa with these tools, in the words of a prompt.
    fn way_to(&self, _operation: &str) -> Option<String> {
        None
    }

    /// Calls a tool that exists.
    fn call(
        &self,
        name: &str,
        arguments: JsonObject,
        call: Call,
    ) -> impl Future<Output = Outcome> + Send + 'static;
}

impl Tools for Catalogue {
    fn instructions(&self) -> String {
        self.instructions()
    }

    fn definitions(&self) -> Vec<ToolDefinition> {
        self.tools()
    }

    fn has(&self, name: &str) -> bool {
        self.has(name)
    }

    fn library(&self) -> Option<&Library> {
        Some(self.library())
    }

    fn way_to(&self, operation: &str) -> Option<String> {
        self.way_to(operation)
    }

    fn call(
        &self,
        name: &str,
        arguments: JsonObject,
        call: Call,
    ) -> impl Future<Output = Outcome> + Send + 'static {
        let (catalogue, name) = (self.clone(), name.to_owned());
        async move { catalogue.call(&name, arguments, &call).await }
    }
}
