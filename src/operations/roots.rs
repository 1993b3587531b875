//! The folders that a client has open, as directories of this machine.

use std::path::PathBuf;

use url::Url;

use super::client::{ClientHandle, NoReply};
use exa_mcp_model::LocalUser;

/// The directories out of which the client of the local user lets files be read: canonical, without those that do not
/// exist. The error is half a sentence that says why there are none.
pub(crate) async fn folders(user: LocalUser, client: ClientHandle) -> Result<Vec<PathBuf>, String> {
    let roots = match client.roots(&user).await {
        Ok(roots) => roots,
        Err(NoReply::Unable) => return Err("the client does not tell its roots".to_owned()),
        Err(why) => return Err(format!("the client was asked for its roots, but {why}")),
    };
    let directories: Vec<PathBuf> = roots.iter().filter_map(|root| directory(root)).collect();
    // Looking at a network drive may take long.
    let canonical = move || -> Vec<PathBuf> {
        let found = directories
            .into_iter()
            .filter_map(|it| it.canonicalize().ok());
        found.filter(|it| it.is_dir()).collect()
    };
    let found = tokio::task::spawn_blocking(canonical).await;
    match found.unwrap_or_default() {
        none if none.is_empty() => {
            Err("none of the client's roots is a directory of this machine".to_owned())
        }
        folders => Ok(folders),
    }
}

/// The directory that a `file://` address names. One on another machine is none of ours.
fn directory(root: &str) -> Option<PathBuf> {
    let url = Url::parse(root).ok().filter(|url| url.scheme() == "file")?;
    url.to_file_path().ok()
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use std::future::ready;

    use super::*;
    use crate::operations::client::{
        ClientCapabilities, ClientInteraction, Question, Reply, ReplyFuture,
    };

    struct Roots(Vec<String>);

    impl ClientInteraction for Roots {
        fn capabilities(&self) -> ClientCapabilities {
            ClientCapabilities {
                roots: true,
                ..ClientCapabilities::default()
            }
        }

        fn ask(&self, _question: Question) -> ReplyFuture {
            Box::pin(ready(Ok(Reply::Roots(self.0.clone()))))
        }
    }

    async fn of(roots: &[String]) -> Result<Vec<PathBuf>, String> {
        let user = LocalUser::of_this_process();
        folders(user, ClientHandle::new(Roots(roots.to_vec()))).await
    }

    #[cfg(unix)]
    #[tokio::test]
    async fn addresses_are_decoded_and_resolved() {
        let folder = tempfile::tempdir().unwrap();
        let real = folder.path().join("with space & ümlaut");
        std::fs::create_dir(&real).unwrap();
        std::os::unix::fs::symlink(&real, folder.path().join("link")).unwrap();
        let url = Url::from_directory_path(&real).unwrap().to_string();
        assert!(url.contains("%20"), "{url}");
        let link = Url::from_file_path(folder.path().join("link")).unwrap();
        let canonical = real.canonicalize().unwrap();
        assert_eq!(of(&[url]).await, Ok(vec![canonical.clone()]));
        assert_eq!(of(&[link.to_string()]).await, Ok(vec![canonical]));
    }

    #[tokio::test]
    async fn what_is_no_directory_here_is_left_out() {
        let odd = [
            "https://example.com/",
            "file://elsewhere/share",
            "not an address",
            "file:///no/such/directory/at/all",
            "",
        ];
        let odd = odd.map(str::to_owned);
        assert!(of(&odd).await.is_err());
        let user = LocalUser::of_this_process();
        assert!(folders(user, ClientHandle::mute()).await.is_err());
    }
}
