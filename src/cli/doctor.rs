//! `exa-mcp-server doctor`: checks the setup.

use serde_json::json;

use crate::config::http::HttpSettings;
use crate::config::{Settings, SettingsSource, default_path};
use crate::operations::{OperationError, all};
use crate::tools::{ResultCache, ToolExecutor};
use exa_mcp_model::{KeyKind, Operation};

/// The result of one check.
struct Finding {
    mark: &'static str,
    text: String,
}

const PASS: &str = "ok  ";
const WARN: &str = "WARN";
const FAIL: &str = "FAIL";

/// Runs all checks. Returns their results as text, and whether all of them passed.
pub(super) async fn run(settings: &Settings, source: &SettingsSource) -> (String, bool) {
    let mut findings = check_configuration(source);
    findings.extend(check_defaults(settings));
    findings.push(check_key(settings));
    findings.extend(check_service_key(settings));
    findings.extend([KeyKind::Api, KeyKind::Service].map(|kind| check_endpoint(settings, kind)));
    match settings.operation_executor() {
        Ok(executor) => {
            findings.push(check_tools(settings));
            findings.push(check_store(settings).await);
            if settings.exa.no_network {
                let text = "network: not used, because EXA_MCP_NO_NETWORK is set";
                findings.push(passed(text.to_owned()));
            } else if settings.key.is_some() {
                findings.push(check_network(&executor).await);
            }
        }
        Err(error) => findings.push(failed(format!("configuration: {error}"))),
    }
    let all_passed = findings.iter().all(|finding| finding.mark != FAIL);
    let line = |finding: &Finding| format!("{} {}", finding.mark, finding.text);
    let lines: Vec<String> = findings.iter().map(line).collect();
    (lines.join("\n"), all_passed)
}

fn passed(text: String) -> Finding {
    Finding { mark: PASS, text }
}

fn failed(text: String) -> Finding {
    Finding { mark: FAIL, text }
}

/// Reports which configuration file is used and which settings take effect, but not their values.
fn check_configuration(source: &SettingsSource) -> Vec<Finding> {
    let Some(file) = source.file() else {
        let location = default_path()
            .map_or_else(String::new, |path| format!(" (none at {})", path.display()));
        return vec![passed(format!("configuration file: none{location}"))];
    };
    let (used, overridden) = source.keys();
    let mut text = format!("configuration file: {}", file.path.display());
    for (keys, what) in [(used, "it sets"), (overridden, "the environment overrides")] {
        if !keys.is_empty() {
            text += &format!("; {what} {}", keys.join(", "));
        }
    }
    let mut findings = vec![passed(text)];
    findings.extend(file.warning().map(|warning| Finding {
        mark: WARN,
        text: format!("configuration file: {warning}"),
    }));
    let http = HttpSettings::read(source);
    findings.extend(http.err().map(|error| failed(format!("http: {error}"))));
    findings
}

/// Reports the default arguments of operations.
fn check_defaults(settings: &Settings) -> Option<Finding> {
    let defaults = &settings.default_arguments;
    let defaults: Vec<String> = defaults
        .iter()
        .map(|(operation, arguments)| format!("{operation} {arguments}"))
        .collect();
    (!defaults.is_empty()).then(|| passed(format!("default arguments: {}", defaults.join(", "))))
}

fn check_key(settings: &Settings) -> Finding {
    if settings.exa.no_network {
        return passed("key: not read, because EXA_MCP_NO_NETWORK is set".to_owned());
    }
    match settings.key {
        Some(_) => passed("key: set".to_owned()),
        None => failed(
            "key: none; get one at https://dashboard.exa.ai/api-keys and set EXA_API_KEY or run `exa-mcp-server login`, or \
             try --sandbox"
                .to_owned(),
        ),
    }
}

/// Reports a service key; most users need none.
fn check_service_key(settings: &Settings) -> Option<Finding> {
    let key = settings.service_key.as_ref();
    key.map(|_| passed("service key: set".to_owned()))
}

fn check_endpoint(settings: &Settings, kind: KeyKind) -> Finding {
    let what = match kind {
        KeyKind::Api => "endpoint",
        KeyKind::Service => "endpoint of team management",
    };
    match settings.exa.base_url_of(kind) {
        None => passed(format!("{what}: the public Exa API")),
        Some(url) => passed(format!(
            "{what}: {} ({})",
            url.origin().ascii_serialization(),
            kind.base_url_variable()
        )),
    }
}

fn check_tools(settings: &Settings) -> Finding {
    let executor = settings
        .operation_executor()
        .ok()
        .map(|executor| ToolExecutor::new(&settings.tools, executor, ResultCache::default()));
    match executor {
        Some(Ok(executor)) => passed(format!(
            "tools: {} ({} tools, {} tokens)",
            settings.tools,
            executor.registry().definitions().len(),
            executor.registry().tokens()
        )),
        Some(Err(error)) => failed(format!("tools: {error}")),
        None => failed("tools: the Exa client cannot be set up".to_owned()),
    }
}

/// Opens the store, which creates its file if necessary.
async fn check_store(settings: &Settings) -> Finding {
    match settings.store.open().check().await {
        Ok(location) => passed(format!("store: {location}")),
        Err(error) => failed(format!("store: {error} (EXA_MCP_STORE)")),
    }
}

/// Calls an operation that costs nothing.
async fn check_network(executor: &crate::operations::OperationExecutor) -> Finding {
    let Some(operation) = probe_operation() else {
        return passed("network: no operation to try it with".to_owned());
    };
    match executor.call(operation, json!({})).await {
        Ok(_) => passed(format!("network: `{}` succeeded", operation.name)),
        Err(OperationError::Exa(error)) => failed(format!("network: {error}")),
        Err(_) => failed(format!("network: `{}` could not be called", operation.name)),
    }
}

fn probe_operation() -> Option<&'static Operation> {
    let needs_nothing = |operation: &&Operation| {
        operation.method == "GET"
            && operation.api.key == KeyKind::Api
            && operation
                .arguments
                .iter()
                .all(|a| !a.required && a.always.is_empty())
    };
    let probe = all().iter().find(|operation| operation.behavior.probe);
    probe.or_else(|| all().iter().find(needs_nothing))
}
