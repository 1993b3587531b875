//! One file of a tree: its types, and its classes with their methods.

use std::collections::BTreeSet;

use serde_json::Value;

use super::answer::Answer;
use super::lower::Lowering;
use super::names::{Taken, pascal};
use super::operation::SdkOperation;
use super::tree::Space;
use super::types::{Declaration, Declarations, Doc, Field, Shape, Side, Type};

/// How a language names things.
pub(super) struct Style {
    /// Names that no type may have, as files use them otherwise.
    pub(super) types: &'static [&'static str],
    /// Names that no member of a class may have.
    pub(super) members: &'static [&'static str],
    /// The name of a member.
    pub(super) member: fn(&str) -> String,
    /// What the name of a method that walks through all pages ends with.
    pub(super) all: &'static str,
    /// The file of a folder itself, without its ending.
    pub(super) folder_file: &'static str,
}

/// One file.
pub(super) struct Module<'a> {
    pub(super) space: &'a Space,
    pub(super) declarations: Declarations,
    pub(super) classes: Vec<Class<'a>>,
}

/// One class of a file.
pub(super) struct Class<'a> {
    pub(super) name: String,
    pub(super) space: &'a Space,
    pub(super) methods: Vec<Method<'a>>,
    /// The names of the members that hold what is nested.
    pub(super) children: Vec<(String, &'a Space)>,
}

/// One operation as a method.
pub(super) struct Method<'a> {
    pub(super) name: String,
    /// The name of the method that walks through all pages, where the answer is a page.
    pub(super) all: Option<String>,
    pub(super) source: &'a SdkOperation,
    /// The name of the type of its arguments.
    pub(super) arguments: String,
    /// It can be called without arguments.
    pub(super) optional: bool,
    /// The name of the type of its answer.
    pub(super) answer: String,
    /// What the results are.
    pub(super) result: Type,
    /// The other fields of the answer.
    pub(super) rest: Vec<Field>,
}

impl<'a> Module<'a> {
    /// Makes the types and classes of a file.
    pub(super) fn new(file: &'a Space, style: &Style) -> Self {
        let mut taken = Taken::with(style.types);
        let spaces = file.in_file();
        let names: Vec<String> = spaces.iter().map(|s| taken.claim(&s.class())).collect();
        // Methods find their types under the names that follow from theirs, whatever the schemas
        // call their definitions.
        for (verb, space) in operations(&spaces) {
            let prefix = type_prefix(file, space, verb);
            taken.claim(&format!("{prefix}Args"));
            taken.claim(&format!("{prefix}Answer"));
        }
        let mut declarations = Declarations::new(taken);
        let shared = output_definitions(&spaces);
        let mut classes = Vec::new();
        for (space, name) in spaces.into_iter().zip(names) {
            let mut methods: Vec<Method<'a>> = Vec::new();
            for (verb, source) in &space.operations {
                let prefix = type_prefix(file, space, verb);
                methods.push(method(&mut declarations, &shared, &prefix, source));
            }
            classes.push(Class::new(name, space, methods, style));
        }
        declarations.cut_circles();
        Self {
            space: file,
            declarations,
            classes,
        }
    }
}

impl Module<'_> {
    /// All methods of all classes.
    pub(super) fn methods(&self) -> impl Iterator<Item = &Method<'_>> {
        self.classes.iter().flat_map(|class| &class.methods)
    }
}

impl<'a> Class<'a> {
    fn new(name: String, space: &'a Space, mut methods: Vec<Method<'a>>, style: &Style) -> Self {
        let mut taken = Taken::with(style.members);
        for (method, (verb, _)) in methods.iter_mut().zip(&space.operations) {
            method.name = taken.claim(&(style.member)(verb));
        }
        let children = space.children.iter();
        let children = children
            .map(|(segment, child)| (taken.claim(&(style.member)(segment)), child))
            .collect();
        for method in &mut methods {
            method.all = method
                .all
                .is_some()
                .then(|| taken.claim(&format!("{}{}", method.name, style.all)));
        }
        Self {
            name,
            space,
            methods,
            children,
        }
    }
}

impl Class<'_> {
    /// What the class is, in words.
    pub(super) fn words(&self) -> String {
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
    /// What the operation does, in words.
    pub(super) fn words(&self) -> String {
        let source = self.source;
        let mut parts = vec![format!("{}.", source.summary.trim_end_matches('.'))];
        if source.description != source.summary {
            parts.push(source.description.clone());
        }
        parts.extend(source.follow.clone());
        parts.join("\n\n")
    }

    /// The names of all methods that it is.
    pub(super) fn names(&self) -> impl Iterator<Item = &str> {
        std::iter::once(self.name.as_str()).chain(self.all.as_deref())
    }
}

fn operations<'a>(spaces: &[&'a Space]) -> Vec<(&'a str, &'a Space)> {
    let of = |space: &&'a Space| {
        let space: &'a Space = space;
        space
            .operations
            .iter()
            .map(move |(verb, _)| (verb.as_str(), space))
    };
    spaces.iter().flat_map(of).collect()
}

/// How the types of an operation begin: what its name adds to the name of the file.
fn type_prefix(file: &Space, space: &Space, verb: &str) -> String {
    let below = space.path.get(file.path.len()..).unwrap_or_default();
    let parts: Vec<&str> = below.iter().map(String::as_str).chain([verb]).collect();
    pascal(&parts.join("_"))
}

/// The names of the definitions that outputs use; the inputs' own get another.
fn output_definitions(spaces: &[&Space]) -> Vec<String> {
    let sources = spaces.iter().flat_map(|space| &space.operations);
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
    let optional = declared.is_some_and(takes_nothing);
    let arguments = declared.map_or_else(String::new, |found| found.name.clone());
    let mut answer = Answer::new(declarations, prefix, &source.output);
    if source.follow.is_some() {
        answer.rest.push(Field {
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
    let paged = cursor && answer.rest.iter().any(|field| field.name == "nextCursor");
    Method {
        name: String::new(),
        all: paged.then(String::new),
        source,
        arguments,
        optional,
        answer: format!("{prefix}Answer"),
        result: answer.result,
        rest: answer.rest,
    }
}

fn takes_nothing(arguments: &Declaration) -> bool {
    match &arguments.shape {
        Shape::Object { fields, .. } => fields.iter().all(|field| !field.required),
        Shape::Alias(_) => false,
    }
}

fn arguments(
    out: &mut Declarations,
    shared: &[String],
    prefix: &str,
    source: &SdkOperation,
) -> usize {
    let name = format!("{prefix}Args");
    out.names.release(&name);
    // The words also keep equal arguments of two operations apart.
    let mut schema = source.input.clone();
    if let Value::Object(schema) = &mut schema {
        let words = format!("Arguments of `{}`.", source.name);
        schema.insert("description".to_owned(), words.into());
    }
    let lowered = Lowering::new(&schema, Side::Input, out, shared).lower(&schema, &name);
    match lowered {
        Type::Named(index) if out.get(index).is_some_and(|found| found.name == name) => index,
        // Nothing that has fields of its own: the name stands for what it is, if that is an object.
        other => {
            let other = match is_object(out, &other) {
                true => other,
                false => Type::Map(Box::new(Type::Unknown)),
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
