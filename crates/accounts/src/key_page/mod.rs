//! A page on this machine where a person enters the Exa API key.
//!
//! A key must not pass through the client, whose model would read it. So it is entered on a page that
//! only this machine can reach, at an address that nobody can guess, once. The key is held in the memory
//! of this process and nowhere else.

mod answer;
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

/// How long a page waits for its visitor.
const LIFE: Duration = Duration::from_secs(5 * 60);

/// How long a closed page may take to say goodbye.
const GOODBYE: Duration = Duration::from_secs(2);

/// Why there is no page.
#[derive(Debug, thiserror::Error)]
pub enum KeyPageError {
    /// No address on this machine could be used.
    #[error("The page for the key could not be opened on 127.0.0.1: {0}.")]
    Listen(#[from] io::Error),
    /// The address would be easy to guess.
    #[error(transparent)]
    Random(#[from] RandomnessError),
}

/// Where keys are asked for: at most one page at a time. Clones share it.
#[derive(Clone)]
pub struct KeyDesk(Arc<Inner>);

struct Inner {
    keys: KeyPool,
    page: Mutex<Option<KeyPage>>,
    turn: Mutex<()>,
}

/// An open page.
#[derive(Clone, Debug)]
pub struct KeyPage {
    /// Names the visit.
    pub id: String,
    /// Where the page is.
    pub url: String,
    state: watch::Sender<State>,
}

/// How a page stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum State {
    /// It waits for its visitor.
    Open,
    /// A key was entered.
    Done,
    /// It was closed, or nobody came.
    Gone,
}

impl KeyDesk {
    /// Puts the keys that are entered into this pool.
    pub fn new(keys: KeyPool) -> Self {
        Self(Arc::new(Inner {
            keys,
            page: Mutex::default(),
            turn: Mutex::default(),
        }))
    }

    /// Waits until nobody else asks: one person is asked one question at a time.
    pub async fn turn(&self) -> MutexGuard<'_, ()> {
        self.0.turn.lock().await
    }

    /// The page that is open, or a new one.
    pub async fn page(&self) -> Result<KeyPage, KeyPageError> {
        let mut page = self.0.page.lock().await;
        if let Some(open) = page.as_ref().filter(|page| page.is_open()) {
            return Ok(open.clone());
        }
        let opened = KeyPage::open(self.0.keys.clone()).await?;
        *page = Some(opened.clone());
        Ok(opened)
    }
}

impl KeyPage {
    async fn open(keys: KeyPool) -> Result<Self, KeyPageError> {
        let listener = TcpListener::bind(("127.0.0.1", 0)).await?;
        let address = listener.local_addr()?;
        let (path, token) = (format!("/{}", ids::random_id()?), ids::random_id()?);
        let (state, _) = watch::channel(State::Open);
        let page = Self {
            id: ids::random_id()?,
            url: format!("http://{address}{path}"),
            state,
        };
        let desk = answer::Desk {
            host: address.to_string(),
            path,
            token,
            keys,
            page: page.clone(),
        };
        tokio::spawn(page.clone().serve(listener, desk));
        Ok(page)
    }

    /// Serves until a key was entered, the page was closed, or nobody came.
    async fn serve(self, listener: TcpListener, desk: answer::Desk) {
        let router = Router::new()
            .fallback(answer::answer)
            .with_state(Arc::new(desk));
        let closed = self.clone();
        let serving = axum::serve(listener, router)
            .with_graceful_shutdown(async move { closed.over().await });
        let ended = async {
            if timeout(LIFE, self.over()).await.is_err() {
                self.close();
            }
            // A browser may hold its connection open without a word.
            sleep(GOODBYE).await;
        };
        tokio::select! {
            _ = serving => {}
            () = ended => {}
        }
        self.close();
    }

    fn is_open(&self) -> bool {
        *self.state.borrow() == State::Open
    }

    /// Closes the page, unless a key was entered.
    pub fn close(&self) {
        self.leave(State::Gone);
    }

    fn leave(&self, to: State) -> bool {
        self.state.send_if_modified(|state| {
            let open = *state == State::Open;
            if open {
                *state = to;
            }
            open
        })
    }

    async fn over(&self) {
        let mut state = self.state.subscribe();
        let _ = state.wait_for(|state| *state != State::Open).await;
    }

    /// Waits until the page is over; says whether a key was entered.
    pub async fn is_done(&self) -> bool {
        self.over().await;
        *self.state.borrow() == State::Done
    }
}

#[cfg(test)]
mod tests;
