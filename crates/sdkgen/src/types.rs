//! Language-neutral types, and the declarations of one file.

use std::collections::BTreeMap;

use serde_json::Value;

use super::names::NameAllocator;

/// Whether a type is sent to the API or received from it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Side {
    /// Exact: a field that is not in the schema is a mistake of the caller.
    Input,
    /// Open: the API may add fields and values at any time.
    Output,
}

/// A type.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Type {
    /// Any JSON value; also for schemas that cannot be expressed.
    Unknown,
    Null,
    Boolean,
    Integer,
    Number,
    String,
    /// One of these scalars or, if open, another string.
    Literals {
        values: Vec<Value>,
        open: bool,
    },
    List(Box<Type>),
    /// An object with any keys.
    Map(Box<Type>),
    Union(Vec<Type>),
    /// A declaration, by its index.
    Named(usize),
}

impl Type {
    /// Creates a union without duplicates; `Unknown` absorbs all other members.
    pub(super) fn union(members: Vec<Type>) -> Type {
        let mut flat: Vec<Type> = Vec::new();
        for member in members {
            let parts = match member {
                Type::Union(parts) => parts,
                other => vec![other],
            };
            for part in parts {
                if !flat.contains(&part) {
                    flat.push(part);
                }
            }
        }
        if flat.contains(&Type::Unknown) {
            return Type::Unknown;
        }
        if flat.contains(&Type::Number) {
            flat.retain(|member| *member != Type::Integer);
        }
        match flat.len() {
            0 => Type::Unknown,
            1 => flat.pop().unwrap_or(Type::Unknown),
            _ => Type::Union(flat),
        }
    }
}

/// The documentation of a schema.
#[derive(Debug, Clone, Default, PartialEq)]
pub(super) struct Doc {
    pub(super) text: String,
    pub(super) deprecated: bool,
}

impl Doc {
    /// Extracts the documentation of a schema.
    pub(super) fn of(schema: &Value) -> Self {
        let text = |key| schema.get(key).and_then(Value::as_str);
        Self {
            text: text("description")
                .or_else(|| text("title"))
                .unwrap_or_default()
                .to_owned(),
            deprecated: schema.get("deprecated").and_then(Value::as_bool) == Some(true),
        }
    }
}

/// One field of an object.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Field {
    pub(super) name: String,
    pub(super) doc: Doc,
    pub(super) required: bool,
    pub(super) value: Type,
}

/// The definition of a named type.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Shape {
    /// An object; an open one may have further fields.
    Object {
        fields: Vec<Field>,
        open: bool,
    },
    Alias(Type),
}

/// A named type.
#[derive(Debug)]
pub(super) struct Declaration {
    pub(super) name: String,
    pub(super) doc: Doc,
    pub(super) side: Side,
    pub(super) shape: Shape,
}

/// The named types of one file.
#[derive(Debug, Default)]
pub(super) struct Declarations {
    list: Vec<Declaration>,
    pub(super) names: NameAllocator,
    /// Declarations by side and source schema.
    known: BTreeMap<(Side, String), usize>,
}

impl Declarations {
    /// Creates an empty list with reserved names.
    pub(super) fn new(names: NameAllocator) -> Self {
        Self {
            names,
            ..Self::default()
        }
    }

    /// Returns all declarations in order of first use.
    pub(super) fn all(&self) -> &[Declaration] {
        &self.list
    }

    /// Returns the declaration that a type refers to.
    pub(super) fn get(&self, index: usize) -> Option<&Declaration> {
        self.list.get(index)
    }

    /// Returns the index of the declaration for this schema.
    pub(super) fn known(&self, side: Side, schema: &str) -> Option<usize> {
        self.known.get(&(side, schema.to_owned())).copied()
    }

    /// Adds a placeholder declaration, so that its own parts can refer to it.
    pub(super) fn reserve(&mut self, side: Side, schema: String, name: &str, doc: Doc) -> usize {
        let index = self.list.len();
        self.list.push(Declaration {
            name: self.names.claim(name),
            doc,
            side,
            shape: Shape::Alias(Type::Unknown),
        });
        self.known.insert((side, schema), index);
        index
    }

    /// Defines a reserved declaration.
    pub(super) fn fill(&mut self, index: usize, shape: Shape) {
        if let Some(declaration) = self.list.get_mut(index) {
            declaration.shape = shape;
        }
    }

    /// Replaces aliases that refer to themselves without an object or a list in between.
    pub(super) fn break_cycles(&mut self) {
        for index in 0..self.list.len() {
            if self.reaches(index, index, &mut Vec::new()) {
                self.fill(index, Shape::Alias(Type::Unknown));
            }
        }
    }

    fn reaches(&self, from: usize, goal: usize, seen: &mut Vec<usize>) -> bool {
        let Some(Shape::Alias(target)) = self.get(from).map(|found| &found.shape) else {
            return false;
        };
        let members = match target {
            Type::Union(members) => members.as_slice(),
            single => std::slice::from_ref(single),
        };
        members.iter().any(|member| match member {
            Type::Named(next) if *next == goal => true,
            Type::Named(next) if !seen.contains(next) => {
                seen.push(*next);
                self.reaches(*next, goal, seen)
            }
            _ => false,
        })
    }
}
