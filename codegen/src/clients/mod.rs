//! Stage 7: generates a Rust client from the lowered document.

mod selection;

use std::cell::Cell;
use std::collections::BTreeMap;
use std::panic::AssertUnwindSafe;
use std::sync::Once;

use progenitor::{GenerationSettings, Generator, HooksMode, InterfaceStyle, TypeImpl};
use quote::quote;
use serde_json::Value;
use syn::visit_mut::VisitMut;

use crate::error::{Error, Result};
use crate::load::Document;
use crate::lower::{LoweringRules, lower};
use crate::model::{ApiModel, Operation};

pub use selection::generate_all;

/// A generated client.
pub struct GeneratedClient {
    /// The parsed module.
    pub file: syn::File,
    /// The arguments of every method, by method name.
    pub methods: BTreeMap<String, Vec<MethodArgument>>,
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
    let lowered = lower(document, api, operations, rules)?;
    let mut file = run_generator(&lowered).map_err(|message| Error::Client {
        file: document.file.clone(),
        pointer: operations
            .first()
            .map_or(String::new(), |operation| operation.pointer.clone()),
        message,
    })?;
    post_process(&mut file);
    let methods = methods(&file);
    Ok(GeneratedClient { file, methods })
}

/// Runs the client generator and turns its panics into errors.
fn run_generator(lowered: &Value) -> std::result::Result<syn::File, String> {
    let openapi: openapiv3::OpenAPI = serde_json::from_value(lowered.clone())
        .map_err(|error| format!("the lowered document is not OpenAPI 3.0: {error}"))?;
    let result = catch_panic(|| Generator::new(&settings()).generate_tokens(&openapi));
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

fn settings() -> GenerationSettings {
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
fn post_process(file: &mut syn::File) {
    file.items
        .retain(|item| !matches!(item, syn::Item::Mod(module) if module.ident == "prelude"));
    for item in &mut file.items {
        match item {
            // `new` would create its own HTTP client, without our limits and redirect rules.
            syn::Item::Impl(block) => block
                .items
                .retain(|item| !matches!(item, syn::ImplItem::Fn(f) if f.sig.ident == "new")),
            syn::Item::Mod(module) if module.ident == "types" => {
                LosslessFields.visit_item_mod_mut(module)
            }
            _ => {}
        }
    }
    file.items.push(client_hooks());
}

/// Returns the hooks, which only call functions of `crates/exa-client`.
fn client_hooks() -> syn::Item {
    syn::parse_quote! {
        impl ClientHooks<exa_mcp_exa_client::CallContext> for Client {
            async fn pre<E>(
                &self,
                request: &mut reqwest::Request,
                _info: &OperationInfo,
            ) -> std::result::Result<(), Error<E>> {
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
