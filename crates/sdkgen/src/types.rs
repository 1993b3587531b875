//! The types that both languages can say, and the declarations of one file.

use std::collections::BTreeMap;

use serde_json::Value;

use super::names::Taken;

/// Whether a type is given to the API or comes from it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Side {
    /// Exact: what the schema does not name is a slip of the caller.
    Input,
    /// Open: the API may add fields and values at any time.
    Output,
}

/// A type.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Type {
    /// Any JSON; also for what this model cannot say.
    Unknown,
    Null,
    Boolean,
    Integer,
    Number,
    String,
    /// One of these scalars or, when open, another string.
    Literals {
        values: Vec<Value>,
        open: bool,
    },
    List(Box<Type>),
    /// An object with any keys.
    Map(Box<Type>),
    Union(Vec<Type>),
    /// A declaration, by its place in the list.
    Named(usize),
}

impl Type {
    /// A union without repetition; unknown takes in everything else.
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

/// What a schema says in words.
#[derive(Debug, Clone, Default, PartialEq)]
pub(super) struct Doc {
    pub(super) text: String,
    pub(super) deprecated: bool,
}

impl Doc {
    /// The words of a schema.
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

/// What a name stands for.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Shape {
    /// An object; an open one may have other fields too.
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
    pub(super) names: Taken,
    /// Declarations by side and by the schema that they were made from.
    known: BTreeMap<(Side, String), usize>,
}

impl Declarations {
    /// No declaration yet, and names that none may have.
    pub(super) fn new(names: Taken) -> Self {
        Self {
            names,
            ..Self::default()
        }
    }

    /// All, in the order in which they were met.
    pub(super) fn all(&self) -> &[Declaration] {
        &self.list
    }

    /// The declaration that a type refers to.
    pub(super) fn get(&self, index: usize) -> Option<&Declaration> {
        self.list.get(index)
    }

    /// The declaration made from this schema.
    pub(super) fn known(&self, side: Side, schema: &str) -> Option<usize> {
        self.known.get(&(side, schema.to_owned())).copied()
    }

    /// Makes room for a declaration, so that what it is made of can refer to it.
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

    /// Says what a reserved name stands for.
    pub(super) fn fill(&mut self, index: usize, shape: Shape) {
        if let Some(declaration) = self.list.get_mut(index) {
            declaration.shape = shape;
        }
    }

    /// Replaces aliases that lead back to themselves without an object or a list between.
    pub(super) fn cut_circles(&mut self) {
        for index in 0..self.list.len() {
            if self.leads_to(index, index, &mut Vec::new()) {
                self.fill(index, Shape::Alias(Type::Unknown));
            }
        }
    }

    fn leads_to(&self, from: usize, goal: usize, seen: &mut Vec<usize>) -> bool {
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
                self.leads_to(*next, goal, seen)
            }
            _ => false,
        })
    }
}
