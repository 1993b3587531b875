//! Locations in the schemas of an operation.

/// Which of the two schemas of an operation is compared; they are judged in opposite ways.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Direction {
    /// The arguments that callers send.
    Input,
    /// The response that clients read.
    Output,
}

/// A location in one of an operation's schemas.
#[derive(Debug, Clone)]
pub(super) struct SchemaPath {
    direction: Direction,
    path: String,
    definition_path: Option<String>,
}

impl SchemaPath {
    /// Returns the path of the whole schema.
    pub(super) const fn root(direction: Direction) -> Self {
        Self {
            direction,
            path: String::new(),
            definition_path: None,
        }
    }

    /// Returns whether this is the whole schema, whose properties are the operation's arguments.
    pub(super) const fn is_root(&self) -> bool {
        self.path.is_empty()
    }

    /// Returns the path of a property. `origin` is the definition that declares the property, if it
    /// is not the one that this path is in.
    pub(super) fn property(&self, name: &str, origin: Option<&str>) -> Self {
        let base = origin.map(|target| definition_name(target).to_owned());
        Self {
            direction: self.direction,
            path: join(&self.path, name),
            definition_path: base
                .or_else(|| self.definition_path.clone())
                .map(|base| join(&base, name)),
        }
    }

    /// Returns the path of the array elements.
    pub(super) fn items(&self) -> Self {
        self.with_suffix("[]")
    }

    /// Returns the path of the values of additional properties.
    pub(super) fn values(&self) -> Self {
        self.with_suffix(".*")
    }

    /// Returns the path of one branch of a union.
    pub(super) fn branch(&self, label: &str) -> Self {
        self.with_suffix(&format!("{{{label}}}"))
    }

    /// Returns the same path, now also relative to the definition that `target` points at.
    pub(super) fn definition(&self, target: &str) -> Self {
        Self {
            definition_path: Some(definition_name(target).to_owned()),
            ..self.clone()
        }
    }

    /// Returns the location as it appears in a [`super::ApiChange`].
    pub(super) fn location(&self) -> String {
        match (self.direction, self.path.as_str()) {
            (Direction::Input, "") => "arguments".to_owned(),
            (Direction::Output, "") => "output".to_owned(),
            (Direction::Input, path) => format!("argument {path}"),
            (Direction::Output, path) => format!("output {path}"),
        }
    }

    /// Returns the location relative to the innermost definition around it.
    pub(super) fn definition_path(&self) -> Option<String> {
        self.definition_path.clone()
    }

    fn with_suffix(&self, suffix: &str) -> Self {
        Self {
            direction: self.direction,
            path: format!("{}{suffix}", self.path),
            definition_path: self
                .definition_path
                .as_ref()
                .map(|base| format!("{base}{suffix}")),
        }
    }
}

/// Returns the last part of a reference such as `#/$defs/Webset`.
pub(super) fn definition_name(target: &str) -> &str {
    target.rsplit('/').next().unwrap_or(target)
}

/// Appends a name to a path, quoted if it contains special characters.
fn join(path: &str, name: &str) -> String {
    let plain = !name.is_empty()
        && name
            .chars()
            .all(|char| char.is_alphanumeric() || "_-$@".contains(char));
    match (plain, path.is_empty()) {
        (true, true) => name.to_owned(),
        (true, false) => format!("{path}.{name}"),
        (false, _) => format!("{path}[{name:?}]"),
    }
}

#[cfg(test)]
mod tests {
    use super::{Direction, SchemaPath};

    #[test]
    fn formats_nested_locations_as_paths() {
        let path = SchemaPath::root(Direction::Input)
            .property("search", None)
            .property("criteria", None)
            .items()
            .property("description", None);
        assert_eq!(path.location(), "argument search.criteria[].description");
        assert_eq!(path.definition_path(), None);
        assert_eq!(SchemaPath::root(Direction::Output).location(), "output");
    }

    #[test]
    fn definition_paths_start_at_the_innermost_definition() {
        let path = SchemaPath::root(Direction::Output)
            .property("data", None)
            .items()
            .definition("#/$defs/Item")
            .property("odd name", None)
            .values();
        assert_eq!(path.location(), "output data[][\"odd name\"].*");
        assert_eq!(
            path.definition_path().as_deref(),
            Some("Item[\"odd name\"].*")
        );
        let inherited = path.property("id", Some("#/$defs/Base"));
        assert_eq!(inherited.definition_path().as_deref(), Some("Base.id"));
    }
}
