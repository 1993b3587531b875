//! Stage 8: generates `operations.rs`, the table of operations and the functions that call the clients.

use std::collections::BTreeMap;

use exa_mcp_model::OperationBehavior;
use proc_macro2::TokenStream;
use quote::{format_ident, quote};
use serde_json::Value;

use crate::clients::{GeneratedClient, MethodArgument, option_argument};
use crate::error::{Error, Result};
use crate::lower::client_identifier;
use crate::model::{ApiModel, Body, Encoding, Location, Model, Operation, Parameter};

/// Generates `operations.rs`.
pub fn generate(model: &Model, clients: &BTreeMap<String, GeneratedClient>) -> Result<syn::File> {
    let apis = model.apis.iter().map(api_static);
    let mut rows = Vec::new();
    let mut functions = Vec::new();
    for operation in &model.operations {
        rows.push(operation_row(operation));
        let api = model.apis.iter().find(|api| api.name == operation.api);
        if let (Some(api), Some(client)) = (api, clients.get(&operation.api)) {
            functions.push(call_function(operation, api, client)?);
        }
    }
    let names = model.operations.iter().map(|operation| &operation.name);
    let calls = model
        .operations
        .iter()
        .map(|operation| format_ident!("{}", operation.function));
    let count = proc_macro2::Literal::usize_unsuffixed(rows.len());
    let tokens = quote! {
        //! Every operation of the Exa API with the glue that calls its client.

        use exa_mcp_exa_client::CallContext;
        use exa_mcp_exa_client::{CallFuture, RequestParts, unknown_operation};
        use exa_mcp_model::{Api, Argument, EmbeddedJson, Operation, RequestBody};

        #(#apis)*

        /// All operations, sorted by name.
        pub static OPERATIONS: [Operation; #count] = [#(#rows),*];

        /// Calls the client of an operation.
        pub fn call(operation: &Operation, context: CallContext, parts: RequestParts) -> CallFuture {
            match operation.name {
                #(#names => #calls(context, parts),)*
                unknown => unknown_operation(unknown),
            }
        }

        #(#functions)*
    };
    syn::parse2(tokens).map_err(|error| Error::Client {
        file: "generated/operations.rs".to_owned(),
        pointer: String::new(),
        message: error.to_string(),
    })
}

/// Checks that the client has a method for the operation, with arguments that the glue can pass.
pub fn check(operation: &Operation, api: &ApiModel, client: &GeneratedClient) -> Result<()> {
    call_function(operation, api, client).map(drop)
}

fn api_static(api: &ApiModel) -> TokenStream {
    let ident = api_ident(&api.name);
    let doc = format!(" {}", api.title);
    let (name, base_url, version) = (&api.name, &api.base_url, &api.version);
    quote! {
        #[doc = #doc]
        pub static #ident: Api = Api { name: #name, base_url: #base_url, version: #version };
    }
}

fn api_ident(name: &str) -> proc_macro2::Ident {
    use heck::ToShoutySnakeCase;
    format_ident!("{}", name.to_shouty_snake_case())
}

/// Generates one row of the table.
fn operation_row(operation: &Operation) -> TokenStream {
    let Operation {
        name,
        domain,
        path,
        summary,
        description,
        deprecated,
        timeout_seconds,
        ..
    } = operation;
    let signature = crate::tools::signature::full(operation);
    let api = api_ident(&operation.api);
    let method = operation.method.to_uppercase();
    let read_only = operation.method == "get" || operation.read_only;
    let parameters = operation.parameters.iter().map(parameter_argument);
    let fields = body_arguments(operation);
    let server_arguments = operation.server_arguments.iter().map(|argument| {
        let name = &argument.name;
        quote! { Argument::server(#name) }
    });
    let input = format!("schemas/{name}.input.json");
    let output = format!("schemas/{name}.output.json");
    let body = match &operation.body {
        Body::None => quote! { RequestBody::None },
        Body::Fields {
            required, closed, ..
        } => {
            quote! { RequestBody::Fields { required: #required, closed: #closed } }
        }
        Body::Whole { required, .. } => quote! { RequestBody::Whole { required: #required } },
    };
    let behavior = if operation.behavior == OperationBehavior::default() {
        quote! { "{}" }
    } else {
        let file = format!("behavior/{name}.json");
        quote! { include_str!(#file) }
    };
    quote! {
        Operation {
            name: #name,
            api: &#api,
            domain: #domain,
            method: #method,
            path: #path,
            summary: #summary,
            description: #description,
            deprecated: #deprecated,
            signature: #signature,
            arguments: &[#(#parameters,)* #(#fields,)* #(#server_arguments),*],
            body: #body,
            input_schema: include_str!(#input),
            output_schema: include_str!(#output),
            timeout_seconds: #timeout_seconds,
            read_only: #read_only,
            behavior: EmbeddedJson::new(#behavior),
        }
    }
}

fn parameter_argument(parameter: &Parameter) -> TokenStream {
    let Parameter {
        name,
        wire_name,
        aliases,
        always_sent,
        ..
    } = parameter;
    let required = parameter.required && parameter.always_sent.is_empty();
    match parameter.location {
        Location::Path => quote! { Argument::path(#name, #wire_name, &[#(#aliases),*]) },
        Location::Query => quote! { Argument::query(#name, #wire_name, #required) },
        Location::Header => {
            quote! { Argument::header(#name, #wire_name, #required, &[#(#always_sent),*]) }
        }
    }
}

fn body_arguments(operation: &Operation) -> Vec<TokenStream> {
    let argument = |name: &str, required: bool| {
        let replacements = operation.replacements(name);
        if required && !replacements.is_empty() {
            quote! { Argument::body(#name, true).unless(&[#(#replacements),*]) }
        } else {
            quote! { Argument::body(#name, #required) }
        }
    };
    match &operation.body {
        Body::None => vec![],
        Body::Whole { name, required } => vec![argument(name, *required)],
        Body::Fields { fields, .. } => fields
            .iter()
            .map(|(name, required)| argument(name, *required == Value::Bool(true)))
            .collect(),
    }
}

/// Generates the function that extracts the arguments and calls the client.
fn call_function(
    operation: &Operation,
    api: &ApiModel,
    client: &GeneratedClient,
) -> Result<TokenStream> {
    let fail = |message: String| Error::Client {
        file: api.file.clone(),
        pointer: operation.pointer.clone(),
        message,
    };
    let signature = client
        .methods
        .get(&operation.function)
        .ok_or_else(|| fail(format!("the client has no method `{}`", operation.function)))?;
    let mut bindings = Vec::new();
    let mut passed = Vec::new();
    for argument in signature {
        let (binding, value) = bind_argument(operation, argument).ok_or_else(|| {
            fail(format!(
                "no parameter matches the argument `{}`",
                argument.name
            ))
        })?;
        bindings.push(binding);
        passed.push(value);
    }
    let context_parameters: Vec<_> = operation
        .parameters
        .iter()
        .filter(|p| p.via_context)
        .map(context_parameter)
        .collect();
    let omit = matches!(
        operation.body,
        Body::Fields {
            required: false,
            ..
        } | Body::Whole {
            required: false,
            ..
        }
    )
    .then(|| quote! { context = context.with_omit_body(!parts.has_body()); });
    let mutable = (!context_parameters.is_empty() || omit.is_some())
        .then(|| quote! { let mut context = context; });
    let parts_mut =
        (!signature.is_empty() || !context_parameters.is_empty()).then(|| quote! { mut });
    let parts_name = if parts_mut.is_some() || omit.is_some() {
        format_ident!("parts")
    } else {
        format_ident!("_parts")
    };
    let name = format_ident!("{}", operation.function);
    let module = format_ident!("{}", operation.api);
    let api = api_ident(&operation.api);
    Ok(quote! {
        fn #name(context: CallContext, #parts_mut #parts_name: RequestParts) -> CallFuture {
            Box::pin(async move {
                #mutable
                #omit
                #(#context_parameters)*
                #(#bindings)*
                let http = context.http().client()?.clone();
                let base_url = context.http().base_url(#api.base_url);
                let client = super::#module::Client::new_with_client(&base_url, http, context);
                let response = client.#name(#(#passed),*).await?;
                Ok(response.into())
            })
        }
    })
}

/// Generates a `let` that reads an argument from the parts, and the expression that passes it on.
fn bind_argument(
    operation: &Operation,
    argument: &MethodArgument,
) -> Option<(TokenStream, TokenStream)> {
    let ident = format_ident!("{}", argument.name);
    let parameter = operation
        .parameters
        .iter()
        .find(|parameter| !parameter.via_context && client_identifier(parameter) == argument.name);
    let Some(parameter) = parameter else {
        let body = argument.name == "body" && !matches!(operation.body, Body::None);
        let ty = body.then(|| owned_type(&argument.ty, operation))?;
        return Some((quote! { let body: #ty = parts.body()?; }, quote! { &body }));
    };
    let read = read_argument(parameter);
    let optional = option_argument(&argument.ty).is_some();
    Some(match (parameter.location, optional) {
        (Location::Path, _) => {
            let name = &parameter.name;
            (
                quote! { let #ident = parts.path(#name)?; },
                quote! { &#ident },
            )
        }
        (_, false) => {
            let name = &parameter.name;
            let value = by_encoding(parameter, quote! { #ident }, quote! { &#ident });
            (
                quote! {
                    let #ident = #read;
                    let #ident = parts.required(#name, #ident)?;
                },
                value,
            )
        }
        (_, true) => {
            let value = by_encoding(
                parameter,
                quote! { #ident },
                match parameter.encoding {
                    Encoding::Repeated | Encoding::Number => quote! { #ident.as_ref() },
                    _ => quote! { #ident.as_deref() },
                },
            );
            (quote! { let #ident = #read?; }, value)
        }
    })
}

/// Booleans are passed by value, everything else by reference.
fn by_encoding(parameter: &Parameter, value: TokenStream, reference: TokenStream) -> TokenStream {
    match parameter.encoding {
        Encoding::Boolean => value,
        _ => reference,
    }
}

/// Generates the expression that reads an optional argument in its encoding.
fn read_argument(parameter: &Parameter) -> TokenStream {
    let name = &parameter.name;
    let always_sent = &parameter.always_sent;
    match parameter.encoding {
        Encoding::Joined(',') if parameter.location == Location::Header => {
            quote! { parts.header_list(#name, &[#(#always_sent),*]) }
        }
        Encoding::Text if parameter.location == Location::Header => quote! { parts.header(#name) },
        Encoding::Text => quote! { parts.text(#name) },
        Encoding::Number => quote! { parts.number(#name) },
        Encoding::Boolean => quote! { parts.boolean(#name) },
        Encoding::Repeated => quote! { parts.list(#name) },
        Encoding::Joined(separator) => {
            quote! { parts.joined(#name, #separator, &[#(#always_sent),*]) }
        }
        Encoding::Json => quote! { parts.json(#name) },
    }
}

/// Generates code for a parameter that the client cannot take: the hooks add it to the request.
fn context_parameter(parameter: &Parameter) -> TokenStream {
    let wire_name = &parameter.wire_name;
    let name = &parameter.name;
    if parameter.location == Location::Header {
        let read = read_argument(parameter);
        return quote! {
            if let Some(value) = #read? {
                context = context.with_header_text(#wire_name, &value)?;
            }
        };
    }
    match parameter.encoding {
        Encoding::Repeated => {
            quote! {
                for value in parts.list(#name)?.unwrap_or_default() {
                    context = context.with_query(#wire_name, value);
                }
            }
        }
        Encoding::Joined(_) | Encoding::Json => {
            let read = read_argument(parameter);
            quote! {
                if let Some(value) = #read? {
                    context = context.with_query(#wire_name, value);
                }
            }
        }
        _ => {
            quote! {
                if let Some(value) = parts.text(#name)? {
                    context = context.with_query(#wire_name, value);
                }
            }
        }
    }
}

/// Returns the owned form of the body's type. Types of the client are qualified with its module.
fn owned_type(ty: &syn::Type, operation: &Operation) -> TokenStream {
    let inner = match ty {
        syn::Type::Reference(reference) => reference.elem.as_ref(),
        other => other,
    };
    let module = format_ident!("{}", operation.api);
    match inner {
        syn::Type::Path(path)
            if path
                .path
                .segments
                .first()
                .is_some_and(|s| s.ident == "types") =>
        {
            quote! { super::#module::#path }
        }
        other => quote! { #other },
    }
}
