//! Writes the Rust module with all tools, sets, commands, prompts and prices.

use super::ToolRegistry;

/// Returns `tools.rs`, the table that is compiled into the server.
pub fn table(registry: &ToolRegistry) -> String {
    let mut text = format!(
        "{}//! Every tool, every set of tools, every command, every prompt, every price, and the operations behind\n\
         //! resources.\n\n\
         use exa_mcp_model::price::PriceList;\n\
         use exa_mcp_model::{{CommandFile, EmbeddedJson, PromptFile, Resources}};\n\n",
        crate::HEADER
    );
    text.push_str(
        "/// Tools by name, each as JSON; sorted.\npub static TOOLS: &[(&str, &str)] = &[\n",
    );
    for name in registry.tools.keys() {
        text.push_str(&format!(
            "    ({name:?}, include_str!(\"tools/{name}.json\")),\n"
        ));
    }
    text.push_str("];\n\n/// Sets by name with their tools; sorted.\npub static SETS: &[(&str, &[&str])] = &[\n");
    for (set, names) in &registry.sets {
        text.push_str(&format!("    ({set:?}, &{names:?}),\n"));
    }
    text.push_str("];\n\n/// JSON Schema of the arguments that say how an answer is shown.\n");
    text.push_str("pub static OPTIONS: &str = include_str!(\"options.json\");\n");
    for (name, what, ty) in [
        (
            "commands",
            "The commands that call operations.",
            "CommandFile",
        ),
        ("prices", "What the operations cost.", "PriceList"),
        ("prompts", "The prompts.", "PromptFile"),
        ("resources", "The operations behind resources.", "Resources"),
    ] {
        let constant = name.to_uppercase();
        text.push_str(&format!(
            "\n/// {what}\npub static {constant}: EmbeddedJson<{ty}> =\n    \
             EmbeddedJson::new(include_str!(\"{name}.json\"));\n"
        ));
    }
    text
}
