//! Stage 8: generates `operations.rs`, the table of operations and the functions that call the clients.

use std::collections::BTreeMap;

use exa_mcp_model::OperationBehavior;
use proc_macro2::TokenStream;
use quote::{format_ident, quote};
use serde_json::Value;

use crate::clients::{GeneratedClient, MethodArgument, option_argument};
use crate::error::{Error, Result};
use crate::lower::client_identifier;
use crate::model::{
    ApiModel, Body, BodyContent, Encoding, KeyPlacement, Location, Model, Operation, Parameter,
    SentWith,
};

/// Generates `operations.rs`.
pub fn generate(model: &Model, clients: &BTreeMap<String, GeneratedClient>) -> Result<syn::File> {
    let apis = model.apis.iter().flat_map(|api| api_statics(api, model));
    let mut rows = Vec::new();
    let mut functions = Vec::new();
    for operation in &model.operations {
        let api = model.apis.iter().find(|api| api.name == operation.api);
        if let (Some(api), Some(client)) = (api, clients.get(&operation.api)) {
            rows.push(operation_row(operation, api));
            functions.push(call_function(operation, api, client)?);
        }
    }
    let names = model.operations.iter().map(|operation| &operation.name);
    let calls = model
        .operations
        .iter()
        .map(|operation| format_ident!("{}", operation.function));
    let count = proc_macro2::Literal::usize_unsuffixed(rows.len());
    let further_imports = further_imports(&functions);
    let tokens = quote! {
        //! Every operation of the Exa API with the glue that calls its client.

        use exa_mcp_exa_client::CallContext;
        use exa_mcp_exa_client::{CallFuture, RequestParts, unknown_operation};
        #further_imports
        use exa_mcp_model::{Api, Argument, EmbeddedJson, KeyKind, Operation, RequestBody};

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

/// Imports the types of the client that few specs need.
fn further_imports(functions: &[TokenStream]) -> Option<TokenStream> {
    let text: String = functions.iter().map(ToString::to_string).collect();
    let names = ["KeyPlacement", "QueryStyle"].into_iter();
    let used: Vec<_> = names
        .filter(|name| text.contains(&format!("{name} ::")))
        .map(|name| format_ident!("{name}"))
        .collect();
    (!used.is_empty()).then(|| quote! { use exa_mcp_exa_client::{#(#used),*}; })
}

/// Checks that the client has a method for the operation, with arguments that the glue can pass.
pub fn check(operation: &Operation, api: &ApiModel, client: &GeneratedClient) -> Result<()> {
    call_function(operation, api, client).map(drop)
}

/// Generates a static for an API and one for each further host of its operations.
fn api_statics(api: &ApiModel, model: &Model) -> Vec<TokenStream> {
    let mut hosts = vec![&api.base_url];
    for operation in model.operations.iter().filter(|it| it.api == api.name) {
        if !hosts.contains(&&operation.base_url) {
            hosts.push(&operation.base_url);
        }
    }
    let doc = format!(" {}", api.title);
    let (name, version) = (&api.name, &api.version);
    let key = format_ident!("{}", format!("{:?}", api.key));
    let admin_only = api.set.is_some();
    let statics = hosts.into_iter().map(|base_url| {
        let ident = api_ident(api, base_url);
        quote! {
            #[doc = #doc]
            pub static #ident: Api = Api {
                name: #name,
                base_url: #base_url,
                version: #version,
                key: KeyKind::#key,
                admin_only: #admin_only,
            };
        }
    });
    statics.collect()
}

/// Returns the name of the static for a host of an API.
fn api_ident(api: &ApiModel, base_url: &str) -> proc_macro2::Ident {
    use heck::ToShoutySnakeCase;
    let name = api.name.to_shouty_snake_case();
    if api.base_url == base_url {
        return format_ident!("{name}");
    }
    let host: String = base_url
        .chars()
        .map(|c| if c.is_ascii_alphanumeric() { c } else { '_' })
        .collect();
    format_ident!("{name}_{}", host.to_shouty_snake_case())
}

/// Generates one row of the table.
fn operation_row(operation: &Operation, api: &ApiModel) -> TokenStream {
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
    let api = api_ident(api, &operation.base_url);
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
        Body::Whole { name, required, .. } => vec![argument(name, *required)],
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
    let additions = context_additions(operation);
    let mutable = (!context_parameters.is_empty() || !additions.is_empty())
        .then(|| quote! { let mut context = context; });
    let is_raw_body = operation.body.content().is_some() && !operation.body.is_typed();
    let parts_mut = (!signature.is_empty() || !context_parameters.is_empty() || is_raw_body)
        .then(|| quote! { mut });
    let parts_name = if parts_mut.is_some() || operation.body.content().is_some() {
        format_ident!("parts")
    } else {
        format_ident!("_parts")
    };
    let name = format_ident!("{}", operation.function);
    let module = format_ident!("{}", operation.api);
    let api = api_ident(api, &operation.base_url);
    Ok(quote! {
        fn #name(context: CallContext, #parts_mut #parts_name: RequestParts) -> CallFuture {
            Box::pin(async move {
                #mutable
                #(#additions)*
                #(#context_parameters)*
                #(#bindings)*
                let http = context.http().client()?.clone();
                let base_url = context.base_url(&#api)?;
                let client = super::#module::Client::new_with_client(&base_url, http, context);
                let response = client.#name(#(#passed),*).await?;
                Ok(response.into())
            })
        }
    })
}

/// Generates the statements that tell the hooks what the client does not do: the form of the body, the place of
/// the key and the type of the response.
fn context_additions(operation: &Operation) -> Vec<TokenStream> {
    let mut additions = Vec::new();
    if let Some((content, required)) = operation.body.content() {
        additions.extend(body_addition(content, required));
    }
    if let Some(placement) = &operation.key_placement {
        let placement = match placement {
            KeyPlacement::Header(name) => quote! { Header(#name) },
            KeyPlacement::Bearer => quote! { Bearer },
            KeyPlacement::Query(name) => quote! { Query(#name) },
        };
        additions.push(quote! {
            context = context.with_key_placement(KeyPlacement::#placement);
        });
    }
    if let Some(media) = &operation.response_type {
        additions.push(quote! { context = context.with_response_type(#media)?; });
    }
    additions
}

fn body_addition(content: &BodyContent, required: bool) -> Vec<TokenStream> {
    let read = match content {
        BodyContent::Json(media) => {
            let omit = (!required)
                .then(|| quote! { context = context.with_omit_body(!parts.has_body()); });
            let typed = media.as_ref().map(|media| {
                quote! {
                    if #required || parts.has_body() {
                        context = context.with_header_text("content-type", #media)?;
                    }
                }
            });
            return omit.into_iter().chain(typed).collect();
        }
        BodyContent::Form => quote! { parts.form_content()? },
        BodyContent::Multipart(files) => quote! { parts.multipart_content(&[#(#files),*])? },
        BodyContent::Text(media) => quote! { parts.text_content(#media)? },
        BodyContent::Binary(media) => quote! { parts.binary_content(#media)? },
    };
    vec![quote! { context = context.with_content(#read); }]
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
            let bind = if parameter.encoding == Encoding::Text {
                quote! { let #ident = parts.path(#name)?; }
            } else {
                quote! {
                    let #ident = #read;
                    let #ident = parts.path_text(#name, #ident)?;
                }
            };
            (bind, quote! { &#ident })
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
        Encoding::Joined(',')
            if parameter.location == Location::Header && !parameter.sent_with.is_empty() =>
        {
            let conditions = parameter.sent_with.iter().map(|condition| {
                let SentWith { send, given, is } = condition;
                let value = match is {
                    Some(value) => quote! { Some(#value) },
                    None => quote! { None },
                };
                quote! { (#send, #given, #value) }
            });
            quote! {{
                let mut entries = vec![#(#always_sent),*];
                entries.extend(parts.entries_sent_with(&[#(#conditions),*]));
                parts.header_list(#name, &entries)
            }}
        }
        Encoding::Joined(',') if parameter.location == Location::Header => {
            quote! { parts.header_list(#name, &[#(#always_sent),*]) }
        }
        Encoding::Text if parameter.location == Location::Header => quote! { parts.header(#name) },
        Encoding::Text => quote! { parts.text(#name) },
        Encoding::Number => quote! { parts.number(#name) },
        Encoding::Boolean => quote! { parts.boolean(#name) },
        Encoding::Repeated => quote! { parts.list(#name) },
        Encoding::Joined(separator) => {
            quote! { parts.join(#name, #separator, &[#(#always_sent),*]) }
        }
        Encoding::ObjectText(explode) => quote! { parts.object_text(#name, #explode) },
        // Pairs are never read as one value.
        Encoding::Json | Encoding::Pairs(_) => quote! { parts.json(#name) },
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
        Encoding::Pairs(style) => {
            let style = format_ident!("{style}");
            quote! {
                for (name, value) in parts.query_pairs(#name, #wire_name, QueryStyle::#style)? {
                    context = context.with_query(name, value);
                }
            }
        }
        Encoding::Repeated => {
            quote! {
                for value in parts.list(#name)?.unwrap_or_default() {
                    context = context.with_query(#wire_name, value);
                }
            }
        }
        Encoding::Joined(_) | Encoding::Json | Encoding::ObjectText(_) => {
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
