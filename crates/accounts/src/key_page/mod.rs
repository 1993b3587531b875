//! A local page where the user enters the Exa API key.
//!
//! A key must not pass through the client, whose model would read it. The user enters it on a page on the loopback
//! interface, at an unguessable address that works once. The key only exists in the memory of this process.

mod handler;
mod html;

use std::io;
use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use tokio::net::TcpListener;
use tokio::sync::{Mutex, MutexGuard, watch};
use tokio::time::{sleep, timeout};

use exa_mcp_exa_client::KeyPool;
use exa_mcp_model::ids::{self, RandomnessError};

/// How long a page stays open.
const LIFETIME: Duration = Duration::from_secs(5 * 60);

/// How long a closed page may take to finish its responses.
const SHUTDOWN_TIMEOUT: Duration = Duration::from_secs(2);

/// An error opening a page.
#[derive(Debug, thiserror::Error)]
pub enum KeyPageError {
    /// No port could be opened.
    #[error("The page for the key could not be opened on 127.0.0.1: {0}.")]
    Listen(#[from] io::Error),
    /// The operating system does not provide random numbers for the address.
    #[error(transparent)]
    Random(#[from] RandomnessError),
}

/// What happens to a key that is entered, which the page tells.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum KeyUse {
    /// It stays in memory until the process ends.
    Session,
    /// It is stored for the user.
    Login,
}

/// Asks the user for a key, on at most one page at a time. Clones share it.
#[derive(Clone)]
pub struct KeyPrompt(Arc<Inner>);

struct Inner {
    keys: KeyPool,
    key_use: KeyUse,
    page: Mutex<Option<KeyPage>>,
    prompt_lock: Mutex<()>,
}

/// An open page.
#[derive(Clone, Debug)]
pub struct KeyPage {
    /// The id of the prompt.
    pub id: String,
    /// The URL of the page.
    pub url: String,
    status: watch::Sender<PageStatus>,
}

/// The status of a page.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum PageStatus {
    /// It waits for a key.
    Open,
    /// A key was entered.
    Done,
    /// It was closed or has expired.
    Closed,
}

impl KeyPrompt {
    /// Creates a prompt that adds entered keys to this pool.
    pub fn new(keys: KeyPool, key_use: KeyUse) -> Self {
        Self(Arc::new(Inner {
            keys,
            key_use,
            page: Mutex::default(),
            prompt_lock: Mutex::default(),
        }))
    }

    /// Waits for other prompts, because the user should see one at a time.
    pub async fn lock(&self) -> MutexGuard<'_, ()> {
        self.0.prompt_lock.lock().await
    }

    /// Returns the open page, or opens a new one.
    ///
    /// # Errors
    /// The page cannot be opened.
    pub async fn page(&self) -> Result<KeyPage, KeyPageError> {
        let mut page = self.0.page.lock().await;
        if let Some(open) = page.as_ref().filter(|page| page.is_open()) {
            return Ok(open.clone());
        }
        let opened = KeyPage::open(self.0.keys.clone(), self.0.key_use).await?;
        *page = Some(opened.clone());
        Ok(opened)
    }
}

impl KeyPage {
    async fn open(keys: KeyPool, key_use: KeyUse) -> Result<Self, KeyPageError> {
        let listener = TcpListener::bind(("127.0.0.1", 0)).await?;
        let address = listener.local_addr()?;
        let (path, token) = (format!("/{}", ids::random_id()?), ids::random_id()?);
        let (status, _) = watch::channel(PageStatus::Open);
        let page = Self {
            id: ids::random_id()?,
            url: format!("http://{address}{path}"),
            status,
        };
        let state = handler::PageState {
            host: address.to_string(),
            path,
            token,
            keys,
            key_use,
            page: page.clone(),
        };
        tokio::spawn(page.clone().serve(listener, state));
        Ok(page)
    }

    /// Serves the page until a key is entered, it is closed, or it expires.
    async fn serve(self, listener: TcpListener, state: handler::PageState) {
        let router = Router::new()
            .fallback(handler::handle)
            .with_state(Arc::new(state));
        let closed = self.clone();
        let serving = axum::serve(listener, router)
            .with_graceful_shutdown(async move { closed.wait_until_closed().await });
        let ended = async {
            if timeout(LIFETIME, self.wait_until_closed()).await.is_err() {
                self.close();
            }
            // A browser may keep an idle connection open.
            sleep(SHUTDOWN_TIMEOUT).await;
        };
        tokio::select! {
            _ = serving => {}
            () = ended => {}
        }
        self.close();
    }

    fn is_open(&self) -> bool {
        *self.status.borrow() == PageStatus::Open
    }

    /// Closes the page unless a key was entered.
    pub fn close(&self) {
        self.finish(PageStatus::Closed);
    }

    /// Changes the status of an open page, and returns whether it was open.
    fn finish(&self, new: PageStatus) -> bool {
        self.status.send_if_modified(|status| {
            let is_open = *status == PageStatus::Open;
            if is_open {
                *status = new;
            }
            is_open
        })
    }

    /// Waits until the page is no longer open.
    async fn wait_until_closed(&self) {
        let mut status = self.status.subscribe();
        let _ = status.wait_for(|status| *status != PageStatus::Open).await;
    }

    /// Waits until the page is closed and returns whether a key was entered.
    pub async fn wait(&self) -> bool {
        self.wait_until_closed().await;
        *self.status.borrow() == PageStatus::Done
    }
}

#[cfg(test)]
mod tests;
