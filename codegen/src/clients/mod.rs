//! Stage 7: generates a Rust client from the lowered document.

mod default_values;
mod selection;

use std::cell::Cell;
use std::collections::BTreeMap;
use std::panic::AssertUnwindSafe;
use std::sync::Once;

use proc_macro2::TokenStream;
use progenitor::{GenerationSettings, Generator, HooksMode, InterfaceStyle, TypeImpl};
use quote::{format_ident, quote};
use syn::visit_mut::VisitMut;

use crate::error::{Error, Result};
use crate::load::Document;
use crate::lower::{LoweredDocument, LoweringRules, lower};
use crate::model::{ApiModel, Location, Operation};
use crate::responses;

pub use selection::generate_all;

/// A generated client.
pub struct GeneratedClient {
    /// The parsed module.
    pub file: syn::File,
    /// The arguments of every method, by method name.
    pub methods: BTreeMap<String, Vec<MethodArgument>>,
    /// The source of the module with the response types.
    pub responses: String,
}

impl std::fmt::Debug for GeneratedClient {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_set().entries(self.methods.keys()).finish()
    }
}

/// An argument of a generated method.
#[derive(Clone)]
pub struct MethodArgument {
    /// Rust name.
    pub name: String,
    /// Rust type.
    pub ty: syn::Type,
}

/// Generates the client of one API.
pub fn generate(
    document: &Document,
    api: &ApiModel,
    operations: &[&Operation],
    rules: LoweringRules,
) -> Result<GeneratedClient> {
    let types = responses::collect(document, operations);
    let lowered = lower(document, api, operations, &types, rules)?;
    let mut file = run_generator(&lowered).map_err(|message| Error::Client {
        file: document.file.clone(),
        pointer: operations
            .first()
            .map_or(String::new(), |operation| operation.pointer.clone()),
        message,
    })?;
    post_process(&mut file, api, operations);
    let methods = methods(&file);
    let responses = types.source(&api.title);
    Ok(GeneratedClient {
        file,
        methods,
        responses,
    })
}

/// Runs the client generator and turns its panics into errors.
fn run_generator(lowered: &LoweredDocument) -> std::result::Result<syn::File, String> {
    let openapi: openapiv3::OpenAPI = serde_json::from_value(lowered.root.clone())
        .map_err(|error| format!("the lowered document is not OpenAPI 3.0: {error}"))?;
    let result = catch_panic(|| Generator::new(&settings(lowered)).generate_tokens(&openapi));
    let tokens = match result {
        Ok(Ok(tokens)) => tokens,
        Ok(Err(error)) => return Err(error.to_string()),
        Err(panic) => {
            let text = panic.downcast_ref::<String>().map(String::as_str);
            let text = text.or_else(|| panic.downcast_ref::<&str>().copied());
            return Err(format!("it panicked: {}", text.unwrap_or("no message")));
        }
    };
    syn::parse2(tokens).map_err(|error| format!("its output is not Rust: {error}"))
}

thread_local! {
    static SUPPRESS_PANIC_OUTPUT: Cell<bool> = const { Cell::new(false) };
}

/// Catches a panic without the usual output; the error names the location instead.
fn catch_panic<T>(run: impl FnOnce() -> T) -> std::thread::Result<T> {
    static HOOK: Once = Once::new();
    HOOK.call_once(|| {
        let default_hook = std::panic::take_hook();
        std::panic::set_hook(Box::new(move |info| {
            if !SUPPRESS_PANIC_OUTPUT.get() {
                default_hook(info);
            }
        }));
    });
    SUPPRESS_PANIC_OUTPUT.set(true);
    let result = std::panic::catch_unwind(AssertUnwindSafe(run));
    SUPPRESS_PANIC_OUTPUT.set(false);
    result
}

fn settings(lowered: &LoweredDocument) -> GenerationSettings {
    let number = schemars::schema::SchemaObject {
        instance_type: Some(schemars::schema::InstanceType::Number.into()),
        ..Default::default()
    };
    let mut settings = GenerationSettings::new();
    settings
        .with_interface(InterfaceStyle::Positional)
        .with_hooks(HooksMode::Expected)
        .with_inner_type(quote! { exa_mcp_exa_client::CallContext })
        .with_map_type("::std::collections::BTreeMap")
        .with_conversion(
            number,
            "::serde_json::Number",
            [TypeImpl::Display].into_iter(),
        );
    for (component, path) in &lowered.replacements {
        settings.with_replacement(component, path, std::iter::empty());
    }
    settings
}

/// Returns the arguments of all methods that call the API.
fn methods(file: &syn::File) -> BTreeMap<String, Vec<MethodArgument>> {
    let mut methods = BTreeMap::new();
    let impls = file.items.iter().filter_map(|item| match item {
        syn::Item::Impl(block) if block.trait_.is_none() => Some(block),
        _ => None,
    });
    for function in impls.flat_map(|block| &block.items) {
        let syn::ImplItem::Fn(function) = function else {
            continue;
        };
        let arguments = function.sig.inputs.iter().filter_map(|input| match input {
            syn::FnArg::Typed(typed) => Some(MethodArgument {
                name: match typed.pat.as_ref() {
                    syn::Pat::Ident(ident) => ident.ident.to_string(),
                    _ => String::new(),
                },
                ty: (*typed.ty).clone(),
            }),
            _ => None,
        });
        if function.sig.asyncness.is_some() {
            methods.insert(function.sig.ident.to_string(), arguments.collect());
        }
    }
    methods
}

/// Removes items that must not be used and adds what the client generator does not support.
fn post_process(file: &mut syn::File, api: &ApiModel, operations: &[&Operation]) {
    file.items
        .retain(|item| !matches!(item, syn::Item::Mod(module) if module.ident == "prelude"));
    for item in &mut file.items {
        match item {
            // `new` would create its own HTTP client, without our limits and redirect rules.
            syn::Item::Impl(block) => {
                block
                    .items
                    .retain(|item| !matches!(item, syn::ImplItem::Fn(f) if f.sig.ident == "new"));
                block.items.iter_mut().for_each(return_our_error);
            }
            syn::Item::Mod(module) if module.ident == "types" => {
                LosslessFields.visit_item_mod_mut(module);
                default_values::derive(module);
            }
            _ => {}
        }
    }
    file.items.push(constructors(api, operations));
    file.items.push(client_hooks(operations));
    let responses = format_ident!("{}", responses::MODULE);
    file.items.push(syn::parse_quote! { pub mod #responses; });
}

/// Makes a method that calls the API return an `ExaError`, whose message says what to do.
fn return_our_error(item: &mut syn::ImplItem) {
    let syn::ImplItem::Fn(function) = item else {
        return;
    };
    let syn::ReturnType::Type(_, output) = &mut function.sig.output else {
        return;
    };
    if function.sig.asyncness.is_none() {
        return;
    }
    let Some((response, error)) = result_arguments(output) else {
        return;
    };
    **output = syn::parse_quote! { Result<#response, exa_mcp_exa_client::ExaError> };
    let body = &function.block;
    function.block = syn::parse_quote! {
        {
            let result: Result<_, #error> = async #body.await;
            result.map_err(exa_mcp_exa_client::ExaError::from)
        }
    };
}

/// Returns the `T` and `E` of `Result<T, E>`.
fn result_arguments(ty: &syn::Type) -> Option<(syn::Type, syn::Type)> {
    let syn::Type::Path(path) = ty else {
        return None;
    };
    let last = path.path.segments.last()?;
    let syn::PathArguments::AngleBracketed(arguments) = &last.arguments else {
        return None;
    };
    let mut types = arguments.args.iter().filter_map(|argument| match argument {
        syn::GenericArgument::Type(ty) => Some(ty.clone()),
        _ => None,
    });
    Some((types.next()?, types.next()?)).filter(|_| last.ident == "Result")
}

/// Returns the constructors for callers who use the client without the server.
fn constructors(api: &ApiModel, operations: &[&Operation]) -> syn::Item {
    let base_url = &api.base_url;
    let kind = format_ident!("{}", format!("{:?}", api.key));
    let timeouts = operations.iter().map(|operation| operation.timeout_seconds);
    let timeout = timeouts.max().unwrap_or_default();
    syn::parse_quote! {
        impl Client {
            /// Creates a client with a key.
            ///
            /// # Errors
            /// The key cannot be sent in an HTTP header.
            pub fn new(key: &str) -> Result<Self, exa_mcp_exa_client::ExaError> {
                Self::with_config(key, exa_mcp_exa_client::ExaConfig::default())
            }

            /// Creates a client with a key and other settings, such as another base URL.
            ///
            /// # Errors
            /// The key or a setting is not valid.
            pub fn with_config(
                key: &str,
                config: exa_mcp_exa_client::ExaConfig,
            ) -> Result<Self, exa_mcp_exa_client::ExaError> {
                let kind = exa_mcp_exa_client::KeyKind::#kind;
                let timeout = std::time::Duration::from_secs(#timeout);
                let context = exa_mcp_exa_client::CallContext::unguarded(kind, key, config, timeout)?;
                let http = context.http().client()?.clone();
                let base_url = context.http().base_url(kind, #base_url);
                Ok(Self::new_with_client(&base_url, http, context))
            }

            /// Changes what every call sends, such as its headers, and its time limit and retries.
            #[must_use]
            pub fn map_context(
                mut self,
                change: impl FnOnce(
                    exa_mcp_exa_client::CallContext,
                ) -> exa_mcp_exa_client::CallContext,
            ) -> Self {
                self.inner = change(self.inner);
                self
            }
        }
    }
}

/// Returns the statement that adds headers which some operations need.
fn default_headers(operations: &[&Operation]) -> Option<TokenStream> {
    let mut by_headers: BTreeMap<Vec<(&str, String)>, Vec<&str>> = BTreeMap::new();
    for operation in operations {
        let parameters = operation.parameters.iter();
        let headers = parameters.filter(|parameter| {
            parameter.location == Location::Header && !parameter.always_sent.is_empty()
        });
        let headers: Vec<_> = headers
            .map(|header| (header.wire_name.as_str(), header.always_sent.join(",")))
            .collect();
        if !headers.is_empty() {
            let function = operation.function.as_str();
            by_headers.entry(headers).or_default().push(function);
        }
    }
    let arms = by_headers.into_iter().map(|(headers, functions)| {
        let headers = headers
            .iter()
            .map(|(name, value)| quote! { (#name, #value) });
        quote! { #(#functions)|* => &[#(#headers),*], }
    });
    let arms: Vec<_> = arms.collect();
    (!arms.is_empty()).then(|| {
        quote! {
            let headers: &[(&str, &str)] = match info.operation_id {
                #(#arms)*
                _ => &[],
            };
            exa_mcp_exa_client::add_missing_headers(request, headers);
        }
    })
}

/// Returns the hooks, which only call functions of `crates/exa-client`.
fn client_hooks(operations: &[&Operation]) -> syn::Item {
    let default_headers = default_headers(operations);
    let info = match &default_headers {
        Some(_) => format_ident!("info"),
        None => format_ident!("_info"),
    };
    syn::parse_quote! {
        impl ClientHooks<exa_mcp_exa_client::CallContext> for Client {
            async fn pre<E>(
                &self,
                request: &mut reqwest::Request,
                #info: &OperationInfo,
            ) -> std::result::Result<(), Error<E>> {
                #default_headers
                exa_mcp_exa_client::prepare(&self.inner, request)
                    .map_err(|error| Error::InvalidRequest(error.message))
            }

            async fn exec(
                &self,
                request: reqwest::Request,
                _info: &OperationInfo,
            ) -> reqwest::Result<reqwest::Response> {
                exa_mcp_exa_client::send(&self.client, &self.inner, request).await
            }
        }
    }
}

/// Changes optional fields to `Maybe`, which distinguishes absent, null and a value.
struct LosslessFields;

impl VisitMut for LosslessFields {
    fn visit_attributes_mut(&mut self, attributes: &mut Vec<syn::Attribute>) {
        attributes.retain_mut(|attribute| match doc_text(attribute) {
            // The schema is in codegen-snapshots/ and need not be repeated in doc comments.
            Some(text) => {
                let text = text.split("<details>").next().unwrap_or_default();
                let text = text.trim_end().to_owned();
                *attribute = syn::parse_quote! { #[doc = #text] };
                true
            }
            None => true,
        });
    }

    fn visit_field_mut(&mut self, field: &mut syn::Field) {
        syn::visit_mut::visit_field_mut(self, field);
        let Some(inner) = option_argument(&field.ty) else {
            return;
        };
        field.ty = syn::parse_quote! { exa_mcp_exa_client::Maybe<#inner> };
        for attribute in &mut field.attrs {
            if attribute.path().is_ident("serde") {
                *attribute = maybe_attribute(attribute);
            }
        }
        if !field
            .attrs
            .iter()
            .any(|attribute| attribute.path().is_ident("serde"))
        {
            field.attrs.push(syn::parse_quote! {
                #[serde(default, skip_serializing_if = "exa_mcp_exa_client::Maybe::is_absent")]
            });
        }
    }
}

fn doc_text(attribute: &syn::Attribute) -> Option<String> {
    let syn::Meta::NameValue(pair) = &attribute.meta else {
        return None;
    };
    match &pair.value {
        syn::Expr::Lit(syn::ExprLit {
            lit: syn::Lit::Str(text),
            ..
        }) if pair.path.is_ident("doc") => Some(text.value()),
        _ => None,
    }
}

/// Returns the serde attribute of a `Maybe` field, with the rename of the original attribute.
fn maybe_attribute(attribute: &syn::Attribute) -> syn::Attribute {
    let mut rename = None;
    let _ = attribute.parse_nested_meta(|meta| {
        let value = meta.value().and_then(|value| value.parse::<syn::LitStr>());
        if meta.path.is_ident("rename") {
            rename = value.ok();
        }
        Ok(())
    });
    let rename = rename.map(|name| quote! { rename = #name, });
    syn::parse_quote! {
        #[serde(#rename default, skip_serializing_if = "exa_mcp_exa_client::Maybe::is_absent")]
    }
}

/// Returns the `T` of `Option<T>`.
pub fn option_argument(ty: &syn::Type) -> Option<syn::Type> {
    let syn::Type::Path(path) = ty else {
        return None;
    };
    let last = path
        .path
        .segments
        .last()
        .filter(|segment| segment.ident == "Option")?;
    let syn::PathArguments::AngleBracketed(arguments) = &last.arguments else {
        return None;
    };
    match arguments.args.first() {
        Some(syn::GenericArgument::Type(inner)) => Some(inner.clone()),
        _ => None,
    }
}
