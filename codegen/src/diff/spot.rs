//! Where in an operation the comparison stands.

/// The two schemas of an operation, which are judged from opposite ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Side {
    /// What callers send.
    Argument,
    /// What readers receive.
    Output,
}

/// A place in one of an operation's schemas.
#[derive(Debug, Clone)]
pub(super) struct Spot {
    side: Side,
    path: String,
    shared: Option<String>,
}

impl Spot {
    /// The schema as a whole.
    pub(super) const fn root(side: Side) -> Self {
        Self {
            side,
            path: String::new(),
            shared: None,
        }
    }

    /// Whether this is the schema as a whole, whose properties are the operation's arguments.
    pub(super) const fn is_root(&self) -> bool {
        self.path.is_empty()
    }

    /// A property of the object here. `origin` names the definition that declares it, when that
    /// is not simply the definition the comparison is in.
    pub(super) fn property(&self, name: &str, origin: Option<&str>) -> Self {
        let base = origin.map(|target| definition_name(target).to_owned());
        Self {
            side: self.side,
            path: join(&self.path, name),
            shared: base
                .or_else(|| self.shared.clone())
                .map(|base| join(&base, name)),
        }
    }

    /// The elements of the array here.
    pub(super) fn items(&self) -> Self {
        self.suffixed("[]")
    }

    /// The values of the undeclared properties of the object here.
    pub(super) fn values(&self) -> Self {
        self.suffixed(".*")
    }

    /// One branch of the union here.
    pub(super) fn branch(&self, label: &str) -> Self {
        self.suffixed(&format!("{{{label}}}"))
    }

    /// The same place, from now on told from the definition `target` points at.
    pub(super) fn definition(&self, target: &str) -> Self {
        Self {
            shared: Some(definition_name(target).to_owned()),
            ..self.clone()
        }
    }

    /// The place as a [`super::Change`] carries it.
    pub(super) fn place(&self) -> String {
        match (self.side, self.path.as_str()) {
            (Side::Argument, "") => "arguments".to_owned(),
            (Side::Output, "") => "output".to_owned(),
            (Side::Argument, path) => format!("argument {path}"),
            (Side::Output, path) => format!("output {path}"),
        }
    }

    /// The place told from the innermost definition around it.
    pub(super) fn shared(&self) -> Option<String> {
        self.shared.clone()
    }

    fn suffixed(&self, suffix: &str) -> Self {
        Self {
            side: self.side,
            path: format!("{}{suffix}", self.path),
            shared: self.shared.as_ref().map(|base| format!("{base}{suffix}")),
        }
    }
}

/// The last part of a reference such as `#/$defs/Webset`.
pub(super) fn definition_name(target: &str) -> &str {
    target.rsplit('/').next().unwrap_or(target)
}

/// Names that would be misread as part of the path are quoted.
fn join(path: &str, name: &str) -> String {
    let plain = !name.is_empty()
        && name
            .chars()
            .all(|letter| letter.is_alphanumeric() || "_-$@".contains(letter));
    match (plain, path.is_empty()) {
        (true, true) => name.to_owned(),
        (true, false) => format!("{path}.{name}"),
        (false, _) => format!("{path}[{name:?}]"),
    }
}

#[cfg(test)]
mod tests {
    use super::{Side, Spot};

    #[test]
    fn places_are_written_as_paths() {
        let spot = Spot::root(Side::Argument)
            .property("search", None)
            .property("criteria", None)
            .items()
            .property("description", None);
        assert_eq!(spot.place(), "argument search.criteria[].description");
        assert_eq!(spot.shared(), None);
        assert_eq!(Spot::root(Side::Output).place(), "output");
    }

    #[test]
    fn shared_places_start_at_the_innermost_definition() {
        let spot = Spot::root(Side::Output)
            .property("data", None)
            .items()
            .definition("#/$defs/Item")
            .property("odd name", None)
            .values();
        assert_eq!(spot.place(), "output data[][\"odd name\"].*");
        assert_eq!(spot.shared().as_deref(), Some("Item[\"odd name\"].*"));
        let inherited = spot.property("id", Some("#/$defs/Base"));
        assert_eq!(inherited.shared().as_deref(), Some("Base.id"));
    }
}
