//! The folders out of which files may be read.

use std::future::Future;
use std::path::PathBuf;
use std::pin::Pin;
use std::sync::Arc;
use std::{env, fmt};

use crate::operations::client::ClientHandle;
use crate::operations::roots;
use exa_mcp_model::LocalUser;

/// The environment variable that names the folders of the operator.
pub(crate) const IMPORT_DIR_VARIABLE: &str = "EXA_MCP_IMPORT_DIR";

/// The folders, or why there are none. The reason is half a sentence.
type FoldersFuture = Pin<Box<dyn Future<Output = Result<Vec<PathBuf>, String>> + Send>>;

/// Says out of which folders files may be read. It is asked anew for every file, since a client may
/// open and close folders at any time.
#[derive(Clone)]
pub struct Folders(Source);

#[derive(Clone)]
enum Source {
    /// Every file, for someone who could read it anyway.
    Anywhere,
    Asked(Arc<dyn Fn() -> FoldersFuture + Send + Sync>),
}

/// What a path must fit.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Allowed {
    Anywhere,
    Within(Vec<PathBuf>),
}

impl Folders {
    /// No folders, for this reason, which should say in half a sentence what to do.
    pub fn none(reason: impl Into<String>) -> Self {
        let reason = reason.into();
        Self::asked(move || Box::pin(std::future::ready(Err(reason.clone()))))
    }

    /// Always the same folders.
    pub fn fixed(folders: Vec<PathBuf>) -> Self {
        Self::asked(move || Box::pin(std::future::ready(Ok(folders.clone()))))
    }

    /// The folders that the client of the local user has open. Nobody else's client may open any: it would
    /// name whatever it likes to read.
    pub fn of_client(user: &LocalUser, client: ClientHandle) -> Self {
        let user = user.clone();
        Self::asked(move || Box::pin(roots::folders(user.clone(), client.clone())))
    }

    /// None at the wish of a client elsewhere, whatever it says of its roots.
    pub fn of_remote_client() -> Self {
        Self::none("a client over HTTP cannot open files of the server's machine")
    }

    /// Folders that somebody has to be asked for.
    fn asked(provider: impl Fn() -> FoldersFuture + Send + Sync + 'static) -> Self {
        Self(Source::Asked(Arc::new(provider)))
    }

    /// Any file at all, for the user who could read it without us.
    pub fn anywhere(_user: &LocalUser) -> Self {
        Self(Source::Anywhere)
    }

    /// The folders of the operator: those in `EXA_MCP_IMPORT_DIR`, or else these, separated as in `PATH`.
    pub fn from_env_or(other: Option<&str>) -> Self {
        let list = env::var_os(IMPORT_DIR_VARIABLE).filter(|list| !list.is_empty());
        let list = list.unwrap_or_else(|| other.unwrap_or_default().into());
        let folders: Vec<PathBuf> = env::split_paths(&list)
            .filter(|folder| !folder.as_os_str().is_empty())
            .collect();
        match folders.is_empty() {
            true => Self::none(format!(
                "no folder is open to this server: its operator can set {IMPORT_DIR_VARIABLE} to the folder that holds \
                 the file"
            )),
            false => Self::fixed(folders),
        }
    }

    /// These folders and those of the other.
    #[must_use]
    pub fn and(&self, other: &Self) -> Self {
        let (Source::Asked(one), Source::Asked(two)) = (self.0.clone(), other.0.clone()) else {
            return Self(Source::Anywhere);
        };
        Self::asked(move || {
            let (one, two) = (one(), two());
            Box::pin(async move {
                match (one.await, two.await) {
                    (Ok(one), Ok(two)) => Ok(one.into_iter().chain(two).collect()),
                    (Ok(folders), Err(_)) | (Err(_), Ok(folders)) => Ok(folders),
                    (Err(one), Err(two)) => Err(format!("{one}; and {two}")),
                }
            })
        })
    }

    pub(super) async fn allowed(&self) -> Result<Allowed, String> {
        match &self.0 {
            Source::Anywhere => Ok(Allowed::Anywhere),
            Source::Asked(ask) => match ask().await? {
                folders if folders.is_empty() => Err("no folder is open to this server".to_owned()),
                folders => Ok(Allowed::Within(folders)),
            },
        }
    }
}

impl fmt::Debug for Folders {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0 {
            Source::Anywhere => f.write_str("Folders(anywhere)"),
            Source::Asked(_) => f.write_str("Folders(asked)"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn within(folders: &[&str]) -> Result<Allowed, String> {
        Ok(Allowed::Within(folders.iter().map(PathBuf::from).collect()))
    }

    #[tokio::test]
    async fn folders_of_two_are_joined() {
        let one = Folders::fixed(vec!["/a".into()]);
        let two = Folders::fixed(vec!["/b".into()]);
        let none = Folders::none("nobody opened one");
        assert_eq!(one.and(&two).allowed().await, within(&["/a", "/b"]));
        assert_eq!(none.and(&two).allowed().await, within(&["/b"]));
        assert_eq!(one.and(&none).allowed().await, within(&["/a"]));
        let reason = none.and(&Folders::none("none is set")).allowed().await;
        assert_eq!(reason, Err("nobody opened one; and none is set".to_owned()));
        let empty = Folders::fixed(Vec::new()).allowed().await;
        assert!(empty.is_err());
        assert_eq!(
            one.and(&Folders(Source::Anywhere)).allowed().await,
            Ok(Allowed::Anywhere)
        );
    }
}
