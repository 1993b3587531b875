//! `exa-mcp-server doctor`: what works, what does not, and what to do.

use serde_json::json;

use crate::config::http::HttpSettings;
use crate::config::{Settings, Source, usual_place};
use crate::operations::{OperationError, all};
use crate::tools::{ResultCache, ToolExecutor};
use exa_mcp_model::Operation;

/// One finding.
struct Finding {
    /// How it is marked.
    mark: &'static str,
    text: String,
}

const GOOD: &str = "ok  ";
/// It works, but something should be done.
const DOUBTFUL: &str = "WARN";
const BAD: &str = "FAIL";

/// All findings as text, and whether everything is well.
pub(super) async fn examine(settings: &Settings, source: &Source) -> (String, bool) {
    let mut findings = configuration(source);
    findings.extend([key(settings), endpoint(settings)]);
    match settings.caller() {
        Ok(caller) => {
            findings.push(tools(settings));
            findings.push(store(settings).await);
            if settings.key.is_some() {
                findings.push(network(&caller).await);
            }
        }
        Err(error) => findings.push(bad(format!("configuration: {error}"))),
    }
    let good = findings.iter().all(|finding| finding.mark != BAD);
    let line = |finding: &Finding| format!("{} {}", finding.mark, finding.text);
    let lines: Vec<String> = findings.iter().map(line).collect();
    (lines.join("\n"), good)
}

fn good(text: String) -> Finding {
    Finding { mark: GOOD, text }
}

fn bad(text: String) -> Finding {
    Finding { mark: BAD, text }
}

/// Which file was read, and what of it counts; never what it says.
fn configuration(source: &Source) -> Vec<Finding> {
    let Some(file) = source.file() else {
        let place =
            usual_place().map_or_else(String::new, |path| format!(" (none at {})", path.display()));
        return vec![good(format!("configuration file: none{place}"))];
    };
    let (used, overruled) = source.keys();
    let mut text = format!("configuration file: {}", file.path.display());
    for (keys, what) in [(used, "it sets"), (overruled, "the environment overrules")] {
        if !keys.is_empty() {
            text += &format!("; {what} {}", keys.join(", "));
        }
    }
    let mut findings = vec![good(text)];
    findings.extend(file.warning().map(|warning| Finding {
        mark: DOUBTFUL,
        text: format!("configuration file: {warning}"),
    }));
    let http = HttpSettings::read(source);
    findings.extend(http.err().map(|error| bad(format!("http: {error}"))));
    findings
}

fn key(settings: &Settings) -> Finding {
    match settings.key {
        Some(_) => good("key: set".to_owned()),
        None => bad(
            "key: none; get one at https://dashboard.exa.ai/api-keys and set EXA_API_KEY, or try --sandbox".to_owned(),
        ),
    }
}

fn endpoint(settings: &Settings) -> Finding {
    match &settings.exa.base_url {
        None => good("endpoint: the public Exa API".to_owned()),
        Some(url) => good(format!(
            "endpoint: {} (EXA_BASE_URL)",
            url.origin().ascii_serialization()
        )),
    }
}

fn tools(settings: &Settings) -> Finding {
    let executor = settings
        .caller()
        .ok()
        .map(|caller| ToolExecutor::new(&settings.tools, caller, ResultCache::default()));
    match executor {
        Some(Ok(executor)) => good(format!(
            "tools: {} ({} tools, {} tokens)",
            settings.tools,
            executor.registry().definitions().len(),
            executor.registry().tokens()
        )),
        Some(Err(error)) => bad(format!("tools: {error}")),
        None => bad("tools: the way to Exa cannot be set up".to_owned()),
    }
}

/// Opens the store, which makes its file if there is none yet.
async fn store(settings: &Settings) -> Finding {
    match settings.store.open().check().await {
        Ok(place) => good(format!("store: {place}")),
        Err(error) => bad(format!("store: {error} (EXA_MCP_STORE)")),
    }
}

/// Asks for a list that costs nothing.
async fn network(caller: &crate::operations::OperationExecutor) -> Finding {
    let Some(operation) = harmless() else {
        return good("network: no operation to try it with".to_owned());
    };
    match caller.call(operation, json!({})).await {
        Ok(_) => good(format!("network: `{}` was answered", operation.name)),
        Err(OperationError::Exa(error)) => bad(format!("network: {error}")),
        Err(_) => bad(format!("network: `{}` could not be called", operation.name)),
    }
}

fn harmless() -> Option<&'static Operation> {
    let needs_nothing = |operation: &&Operation| {
        operation.method == "GET"
            && operation
                .arguments
                .iter()
                .all(|a| !a.required && a.always.is_empty())
    };
    let probe = all().iter().find(|operation| operation.behavior.probe);
    probe.or_else(|| all().iter().find(needs_nothing))
}
