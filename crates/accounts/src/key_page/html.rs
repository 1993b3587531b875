//! The HTML of the page. It contains no external input and loads nothing.

use super::KeyUse;

/// Returns the page with the form.
pub(super) fn form(
    path: &str,
    token: &str,
    nonce: &str,
    key_use: KeyUse,
    problem: Option<&str>,
) -> String {
    let problem = problem.map_or(String::new(), |problem| {
        format!("<p class=\"problem\" role=\"alert\">{problem}</p>")
    });
    let process = std::process::id();
    let (reason, promise, button) = match key_use {
        KeyUse::Session => (
            "which your MCP client started on this computer, needs your Exa API key to continue.",
            "The key stays in the memory of that process until it ends. It is not shown to the client or its model, \
             not written to a file or a log, and sent only to Exa.",
            "Use this key",
        ),
        KeyUse::Login => (
            "which you started in a terminal on this computer, asks for your Exa API key to log you in.",
            "The key is stored for your user on this computer, in the keychain of the system or else in a file that \
             only you can read, until you log out. It is not written to a log, and sent only to Exa.",
            "Store this key",
        ),
    };
    page(
        nonce,
        &format!(
            "<h1>Exa API key</h1>\
             <p>The program <b>exa-mcp-server</b> (process {process}), {reason}</p>\
             <p>{promise}</p>\
             {problem}\
             <form method=\"post\" action=\"{path}\" autocomplete=\"off\">\
             <input type=\"hidden\" name=\"token\" value=\"{token}\">\
             <label for=\"key\">Key</label>\
             <input id=\"key\" name=\"key\" type=\"password\" required autofocus maxlength=\"512\" \
             autocomplete=\"off\" spellcheck=\"false\">\
             <button type=\"submit\">{button}</button>\
             </form>\
             <p class=\"small\">Create keys at dashboard.exa.ai. This page closes after use, and after five \
             minutes. If you did not expect it, close it.</p>"
        ),
    )
}

/// Returns the page after a key was entered.
pub(super) fn success(nonce: &str, key_use: KeyUse) -> String {
    let next = match key_use {
        KeyUse::Session => "The key is in use. You can close this page and return to your client.",
        KeyUse::Login => "You can close this page. The terminal says whether the key was stored.",
    };
    page(nonce, &format!("<h1>Thank you</h1><p>{next}</p>"))
}

/// Returns a page with an error.
pub(super) fn error(nonce: &str, reason: &str) -> String {
    page(nonce, &format!("<h1>Nothing here</h1><p>{reason}</p>"))
}

fn page(nonce: &str, body: &str) -> String {
    format!(
        "<!doctype html><html lang=\"en\"><head><meta charset=\"utf-8\">\
         <meta name=\"viewport\" content=\"width=device-width,initial-scale=1\">\
         <meta name=\"robots\" content=\"noindex\"><title>Exa API key</title>\
         <style nonce=\"{nonce}\">\
         :root{{color-scheme:light dark}}\
         body{{font:16px/1.5 system-ui,sans-serif;max-width:34rem;margin:12vh auto;padding:0 1rem}}\
         label{{display:block;font-weight:600}}\
         input[type=password]{{width:100%;box-sizing:border-box;padding:.6rem;font:inherit;margin:.3rem 0 .8rem}}\
         button{{padding:.6rem 1.2rem;font:inherit;cursor:pointer}}\
         .small{{font-size:.85rem;opacity:.75}}.problem{{color:#c0262d;font-weight:600}}\
         </style></head><body><main>{body}</main></body></html>"
    )
}
