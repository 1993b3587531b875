//! The folders in which files may be read.

use std::future::Future;
use std::path::PathBuf;
use std::pin::Pin;
use std::sync::Arc;
use std::{env, fmt};

use crate::operations::interaction::ClientHandle;
use crate::operations::roots;
use exa_mcp_model::LocalUser;

/// The environment variable that names the folders of the operator.
pub(crate) const IMPORT_DIR_VARIABLE: &str = "EXA_MCP_IMPORT_DIR";

/// The folders, or a clause that says why there are none.
type FoldersFuture = Pin<Box<dyn Future<Output = Result<Vec<PathBuf>, String>> + Send>>;

/// Determines the folders in which files may be read. It is queried for every file, since a client may open and
/// close folders at any time.
#[derive(Clone)]
pub struct Folders(FolderSource);

#[derive(Clone)]
enum FolderSource {
    /// Every file, for a user who could read it anyway.
    Anywhere,
    /// The folders that the function returns.
    Query(Arc<dyn Fn() -> FoldersFuture + Send + Sync>),
}

/// The paths that may be read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Allowed {
    Anywhere,
    Within(Vec<PathBuf>),
}

impl Folders {
    /// No folders; the reason is a clause that says what to do.
    pub fn none(reason: impl Into<String>) -> Self {
        let reason = reason.into();
        Self::query(move || Box::pin(std::future::ready(Err(reason.clone()))))
    }

    /// Always the same folders.
    pub fn fixed(folders: Vec<PathBuf>) -> Self {
        Self::query(move || Box::pin(std::future::ready(Ok(folders.clone()))))
    }

    /// The roots of the local user's client. Roots of other clients do not count: they could name any folder.
    pub fn for_client(user: &LocalUser, client: ClientHandle) -> Self {
        let user = user.clone();
        Self::query(move || Box::pin(roots::folders(user.clone(), client.clone())))
    }

    /// No folders for a remote client, whatever its roots are.
    pub fn for_remote_client() -> Self {
        Self::none("a client over HTTP cannot open files of the server's machine")
    }

    /// The folders that a function returns.
    fn query(provider: impl Fn() -> FoldersFuture + Send + Sync + 'static) -> Self {
        Self(FolderSource::Query(Arc::new(provider)))
    }

    /// Any file, for a user who could read it anyway.
    pub fn anywhere(_user: &LocalUser) -> Self {
        Self(FolderSource::Anywhere)
    }

    /// The folders of the operator: those in `EXA_MCP_IMPORT_DIR`, or else `default`, separated as in `PATH`.
    pub fn from_env_or(default: Option<&str>) -> Self {
        let list = env::var_os(IMPORT_DIR_VARIABLE).filter(|list| !list.is_empty());
        let list = list.unwrap_or_else(|| default.unwrap_or_default().into());
        let folders: Vec<PathBuf> = env::split_paths(&list)
            .filter(|folder| !folder.as_os_str().is_empty())
            .collect();
        if folders.is_empty() {
            return Self::none(format!(
                "no folder is open to this server: its operator can set {IMPORT_DIR_VARIABLE} to the folder that holds \
                 the file"
            ));
        }
        Self::fixed(folders)
    }

    /// Returns the folders of both.
    #[must_use]
    pub fn and(&self, other: &Self) -> Self {
        let (FolderSource::Query(one), FolderSource::Query(two)) =
            (self.0.clone(), other.0.clone())
        else {
            return Self(FolderSource::Anywhere);
        };
        Self::query(move || {
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
            FolderSource::Anywhere => Ok(Allowed::Anywhere),
            FolderSource::Query(query) => match query().await? {
                folders if folders.is_empty() => Err("no folder is open to this server".to_owned()),
                folders => Ok(Allowed::Within(folders)),
            },
        }
    }
}

impl fmt::Debug for Folders {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0 {
            FolderSource::Anywhere => f.write_str("Folders(anywhere)"),
            FolderSource::Query(_) => f.write_str("Folders(query)"),
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
    async fn joins_folders() {
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
            one.and(&Folders(FolderSource::Anywhere)).allowed().await,
            Ok(Allowed::Anywhere)
        );
    }
}
