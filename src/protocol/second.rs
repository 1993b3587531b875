//! A second thread for the calls of a server that has but one.
//!
//! A stdio server runs on one thread, which suits one call after the other: it starts soon and is small.
//! Calls at the same time share it with another one, each call as a whole: handing over parts of it
//! costs more than it gains.

use std::{
    future::pending,
    io,
    sync::{
        OnceLock,
        atomic::{AtomicUsize, Ordering},
    },
    thread,
};

use tokio::runtime::{Builder, Handle};

/// The second thread, which is there as soon as it is needed, and stays: what a call has begun may go on
/// after it.
#[derive(Default)]
pub(super) struct Second {
    runtime: OnceLock<Option<Handle>>,
    here: AtomicUsize,
    there: AtomicUsize,
}

/// A call on one of the two threads, until this is dropped.
pub(super) struct Seat<'a> {
    count: &'a AtomicUsize,
    /// The second thread, if the call is to run there.
    pub(super) there: Option<&'a Handle>,
}

impl Second {
    /// A seat on the thread with fewer calls; the first one counts as long as both have as many.
    pub(super) fn seat(&self) -> Seat<'_> {
        let crowded = self.here.load(Ordering::Relaxed) > self.there.load(Ordering::Relaxed);
        let there = match crowded {
            true => self.runtime.get_or_init(|| start().ok()).as_ref(),
            false => None,
        };
        let count = match there {
            Some(_) => &self.there,
            None => &self.here,
        };
        count.fetch_add(1, Ordering::Relaxed);
        Seat { count, there }
    }
}

impl Drop for Seat<'_> {
    fn drop(&mut self) {
        self.count.fetch_sub(1, Ordering::Relaxed);
    }
}

fn start() -> io::Result<Handle> {
    let runtime = Builder::new_current_thread().enable_all().build()?;
    let handle = runtime.handle().clone();
    let calls = thread::Builder::new().name("calls".to_owned());
    calls.spawn(move || runtime.block_on(pending::<()>()))?;
    Ok(handle)
}
