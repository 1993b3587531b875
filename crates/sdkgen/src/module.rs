//! One file of a package: its types, and its classes with their methods.

use std::collections::BTreeSet;

use serde_json::Value;

use super::lower::Lowering;
use super::names::{NameAllocator, pascal};
use super::operation::SdkOperation;
use super::response::ResponseTypes;
use super::target::Target;
use super::tree::Namespace;
use super::types::{Declaration, Declarations, Doc, Field, Shape, Side, Type};

/// One file.
pub(super) struct Module<'a> {
    pub(super) namespace: &'a Namespace,
    pub(super) declarations: Declarations,
    pub(super) classes: Vec<Class<'a>>,
}

/// One class of a file.
pub(super) struct Class<'a> {
    pub(super) name: String,
    pub(super) namespace: &'a Namespace,
    pub(super) methods: Vec<Method<'a>>,
    /// The nested namespaces, with the names of their members.
    pub(super) children: Vec<(String, &'a Namespace)>,
}

/// One operation as a method.
pub(super) struct Method<'a> {
    pub(super) name: String,
    /// The name of the method that iterates over all pages, if responses are paginated.
    pub(super) all: Option<String>,
    pub(super) source: &'a SdkOperation,
    /// The type name of its arguments.
    pub(super) arguments: String,
    /// The arguments beside the query, if it can also be called with a query alone.
    pub(super) options: Option<QueryOptions>,
    /// Whether it can be called without arguments.
    pub(super) optional: bool,
    /// The type name of its response.
    pub(super) response: String,
    /// The type of one result.
    pub(super) result: Type,
    /// The other fields of the response.
    pub(super) rest: Vec<Field>,
}

/// The arguments beside the query of an operation that requires nothing else.
#[derive(Debug)]
pub(super) struct QueryOptions {
    /// The name of their type.
    pub(super) name: String,
    pub(super) fields: Vec<Field>,
}

impl<'a> Module<'a> {
    /// Lays out the types and classes of a file.
    pub(super) fn new(file: &'a Namespace, target: &Target) -> Self {
        let mut allocator = NameAllocator::reserving(target.reserved_types);
        let namespaces = file.in_file();
        let names: Vec<String> = namespaces
            .iter()
            .map(|s| allocator.claim(&s.class()))
            .collect();
        // The argument and response types are named after their methods, so these names are reserved
        // before the schemas claim any for their definitions.
        for (verb, namespace) in operations(&namespaces) {
            let prefix = type_prefix(file, namespace, verb);
            allocator.claim(&format!("{prefix}Args"));
            allocator.claim(&format!("{prefix}Answer"));
            allocator.claim(&format!("{prefix}Options"));
        }
        let mut declarations = Declarations::new(allocator);
        let shared = output_definitions(&namespaces);
        let mut classes = Vec::new();
        for (namespace, name) in namespaces.into_iter().zip(names) {
            let mut methods: Vec<Method<'a>> = Vec::new();
            for (verb, source) in &namespace.operations {
                let prefix = type_prefix(file, namespace, verb);
                methods.push(method(&mut declarations, &shared, &prefix, source));
            }
            classes.push(Class::new(name, namespace, methods, target));
        }
        declarations.break_cycles();
        Self {
            namespace: file,
            declarations,
            classes,
        }
    }
}

impl Module<'_> {
    /// Returns whether the module has methods, and whether any of them is paginated.
    pub(super) fn method_kinds(&self) -> (bool, bool) {
        let is_paginated = |method: &Method<'_>| method.all.is_some();
        let has_methods = self.methods().next().is_some();
        (has_methods, self.methods().any(is_paginated))
    }

    /// Returns all methods of all classes.
    pub(super) fn methods(&self) -> impl Iterator<Item = &Method<'_>> {
        self.classes.iter().flat_map(|class| &class.methods)
    }
}

impl<'a> Class<'a> {
    fn new(
        name: String,
        namespace: &'a Namespace,
        mut methods: Vec<Method<'a>>,
        target: &Target,
    ) -> Self {
        let mut allocator = NameAllocator::reserving(target.reserved_members);
        for (method, (verb, _)) in methods.iter_mut().zip(&namespace.operations) {
            method.name = allocator.claim(&(target.member_name)(verb));
        }
        let children = namespace.children.iter();
        let children = children
            .map(|(segment, child)| (allocator.claim(&(target.member_name)(segment)), child))
            .collect();
        for method in &mut methods {
            method.all = method
                .all
                .is_some()
                .then(|| allocator.claim(&format!("{}{}", method.name, target.all_suffix)));
        }
        Self {
            name,
            namespace,
            methods,
            children,
        }
    }
}

impl Class<'_> {
    /// Returns the documentation of the class.
    pub(super) fn description(&self) -> String {
        let operations = self
            .methods
            .iter()
            .map(|method| method.source.name.as_str());
        match operations.collect::<Vec<_>>().as_slice() {
            [] => format!("Groups of operations: {}.", self.group_names().join(", ")),
            names => format!("Operations: {}.", names.join(", ")),
        }
    }

    fn group_names(&self) -> Vec<String> {
        let children = self.children.iter();
        children.map(|(_, child)| child.path.join(".")).collect()
    }
}

impl Method<'_> {
    /// Returns the documentation of the operation.
    pub(super) fn description(&self) -> String {
        let source = self.source;
        let mut parts = vec![format!("{}.", source.summary.trim_end_matches('.'))];
        if source.description != source.summary {
            parts.push(source.description.clone());
        }
        parts.extend(source.follow.clone());
        parts.join("\n\n")
    }

    /// Returns the documentation of the method that iterates over all pages.
    pub(super) fn all_description(&self) -> String {
        let name = &self.name;
        format!("The results of all pages of {name}, one page fetched at a time.")
    }

    /// Returns its first parameter, with an empty default if all arguments are optional.
    pub(super) fn parameter(&self) -> String {
        let default = if self.optional { " = {}" } else { "" };
        format!("args: {}{default}", self.arguments)
    }

    /// Returns the names of all methods that are generated for it.
    pub(super) fn names(&self) -> impl Iterator<Item = &str> {
        std::iter::once(self.name.as_str()).chain(self.all.as_deref())
    }
}

fn operations<'a>(namespaces: &[&'a Namespace]) -> Vec<(&'a str, &'a Namespace)> {
    let of = |namespace: &&'a Namespace| {
        let namespace: &'a Namespace = namespace;
        namespace
            .operations
            .iter()
            .map(move |(verb, _)| (verb.as_str(), namespace))
    };
    namespaces.iter().flat_map(of).collect()
}

/// Returns the prefix of an operation's types: its name relative to the file.
fn type_prefix(file: &Namespace, namespace: &Namespace, verb: &str) -> String {
    let below = namespace.path.get(file.path.len()..).unwrap_or_default();
    let parts: Vec<&str> = below.iter().map(String::as_str).chain([verb]).collect();
    pascal(&parts.join("_"))
}

/// Returns the names of all definitions that outputs use; inputs get other names.
fn output_definitions(namespaces: &[&Namespace]) -> Vec<String> {
    let sources = namespaces
        .iter()
        .flat_map(|namespace| &namespace.operations);
    let definitions = sources.filter_map(|(_, source)| source.output.get("$defs")?.as_object());
    let names: BTreeSet<&String> = definitions.flat_map(|found| found.keys()).collect();
    names.into_iter().cloned().collect()
}

fn method<'a>(
    declarations: &mut Declarations,
    shared: &[String],
    prefix: &str,
    source: &'a SdkOperation,
) -> Method<'a> {
    let index = arguments(declarations, shared, prefix, source);
    let declared = declarations.get(index);
    let optional = declared.is_some_and(has_no_required_fields);
    let arguments = declared.map_or_else(String::new, |found| found.name.clone());
    let options = declared.and_then(fields_beside_query);
    let options = options.map(|fields| QueryOptions {
        name: format!("{prefix}Options"),
        fields,
    });
    let mut response = ResponseTypes::new(declarations, prefix, &source.output);
    if source.follow.is_some() {
        response.rest.push(Field {
            name: "isComplete".to_owned(),
            doc: Doc {
                text: "Nothing more will happen to what was started.".to_owned(),
                deprecated: false,
            },
            required: false,
            value: Type::Boolean,
        });
    }
    let cursor = source.input.pointer("/properties/cursor").is_some();
    let paged = cursor && response.rest.iter().any(|field| field.name == "nextCursor");
    Method {
        name: String::new(),
        all: paged.then(String::new),
        source,
        arguments,
        options,
        optional,
        response: format!("{prefix}Answer"),
        result: response.result,
        rest: response.rest,
    }
}

fn has_no_required_fields(arguments: &Declaration) -> bool {
    match &arguments.shape {
        Shape::Object { fields, .. } => fields.iter().all(|field| !field.required),
        Shape::Alias(_) => false,
    }
}

/// Returns the fields beside `query`, if it is a text and the only required one.
fn fields_beside_query(arguments: &Declaration) -> Option<Vec<Field>> {
    let Shape::Object { fields, .. } = &arguments.shape else {
        return None;
    };
    let is_query = |field: &&Field| field.name == "query";
    let (query, others): (Vec<&Field>, Vec<&Field>) = fields.iter().partition(is_query);
    let is_text = |field: &&Field| field.required && field.value == Type::String;
    let fits = query.iter().any(is_text) && others.iter().all(|field| !field.required);
    fits.then(|| others.into_iter().cloned().collect())
}

fn arguments(
    out: &mut Declarations,
    shared: &[String],
    prefix: &str,
    source: &SdkOperation,
) -> usize {
    let name = format!("{prefix}Args");
    out.names.release(&name);
    // The description also keeps equal arguments of two operations apart.
    let mut schema = source.input.clone();
    if let Value::Object(schema) = &mut schema {
        let description = format!("Arguments of `{}`.", source.name);
        schema.insert("description".to_owned(), description.into());
    }
    let lowered = Lowering::new(&schema, Side::Input, out, shared).lower(&schema, &name);
    match lowered {
        Type::Named(index) if out.get(index).is_some_and(|found| found.name == name) => index,
        // Not a declaration of its own: the name becomes an alias, of any object if it is not one.
        other => {
            let other = if is_object(out, &other) {
                other
            } else {
                Type::Map(Box::new(Type::Unknown))
            };
            let key = format!("arguments of {}", source.name);
            let index = out.reserve(Side::Input, key, &name, Doc::of(&schema));
            out.fill(index, Shape::Alias(other));
            index
        }
    }
}

fn is_object(out: &Declarations, of: &Type) -> bool {
    match of {
        Type::Map(_) => true,
        Type::Named(index) => out
            .get(*index)
            .is_some_and(|found| matches!(found.shape, Shape::Object { .. })),
        Type::Union(members) => members.iter().all(|member| is_object(out, member)),
        _ => false,
    }
}
