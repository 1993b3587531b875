//! The roots of a client, as local directories.

use std::path::PathBuf;

use url::Url;

use super::interaction::{ClientHandle, InputError};
use exa_mcp_model::LocalUser;

/// Returns the directories that the client of the local user exposes as roots: canonical, and only those that exist.
/// The error is a clause that says why there are none.
pub(crate) async fn folders(user: LocalUser, client: ClientHandle) -> Result<Vec<PathBuf>, String> {
    let roots = match client.roots(&user).await {
        Ok(roots) => roots,
        Err(InputError::Unable) => return Err("the client does not support roots".to_owned()),
        Err(error) => return Err(format!("the client was asked for its roots, but {error}")),
    };
    let directories: Vec<PathBuf> = roots.iter().filter_map(|root| directory(root)).collect();
    // A network drive may respond slowly.
    let canonical = move || -> Vec<PathBuf> {
        let found = directories
            .into_iter()
            .filter_map(|it| it.canonicalize().ok());
        found.filter(|it| it.is_dir()).collect()
    };
    let found = tokio::task::spawn_blocking(canonical).await;
    match found.unwrap_or_default() {
        folders if folders.is_empty() => {
            Err("none of the client's roots is a directory of this machine".to_owned())
        }
        folders => Ok(folders),
    }
}

/// Returns the local directory of a `file://` URL.
fn directory(root: &str) -> Option<PathBuf> {
    let url = Url::parse(root).ok().filter(|url| url.scheme() == "file")?;
    url.to_file_path().ok()
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use std::future::ready;

    use super::*;
    use crate::operations::interaction::{
        ClientCapabilities, ClientInteraction, InputFuture, InputRequest, InputResponse,
    };

    struct Roots(Vec<String>);

    impl ClientInteraction for Roots {
        fn capabilities(&self) -> ClientCapabilities {
            ClientCapabilities {
                roots: true,
                ..ClientCapabilities::default()
            }
        }

        fn request(&self, _request: InputRequest) -> InputFuture {
            Box::pin(ready(Ok(InputResponse::Roots(self.0.clone()))))
        }
    }

    async fn folders_of(roots: &[String]) -> Result<Vec<PathBuf>, String> {
        let user = LocalUser::of_this_process();
        folders(user, ClientHandle::new(Roots(roots.to_vec()))).await
    }

    #[cfg(unix)]
    #[tokio::test]
    async fn decodes_and_canonicalizes_file_urls() {
        let folder = tempfile::tempdir().unwrap();
        let real = folder.path().join("with space & ümlaut");
        std::fs::create_dir(&real).unwrap();
        std::os::unix::fs::symlink(&real, folder.path().join("link")).unwrap();
        let url = Url::from_directory_path(&real).unwrap().to_string();
        assert!(url.contains("%20"), "{url}");
        let link = Url::from_file_path(folder.path().join("link")).unwrap();
        let canonical = real.canonicalize().unwrap();
        assert_eq!(folders_of(&[url]).await, Ok(vec![canonical.clone()]));
        assert_eq!(folders_of(&[link.to_string()]).await, Ok(vec![canonical]));
    }

    #[tokio::test]
    async fn skips_roots_that_are_not_local_directories() {
        let odd = [
            "https://example.com/",
            "file://elsewhere/share",
            "not an address",
            "file:///no/such/directory/at/all",
            "",
        ];
        let odd = odd.map(str::to_owned);
        assert!(folders_of(&odd).await.is_err());
        let user = LocalUser::of_this_process();
        assert!(
            folders(user, ClientHandle::non_interactive())
                .await
                .is_err()
        );
    }
}
