//! The state of a sandbox that continues with the requests of an earlier one.

use std::hint::spin_loop;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use serde_json::json;

use crate::support::Server;
use crate::websets::{ids, webset};

/// Keeps the processors busy until it is dropped.
struct Load(Arc<AtomicBool>);

impl Load {
    fn start() -> Self {
        let stopped = Arc::new(AtomicBool::new(false));
        for _ in 0..8 {
            let stopped = Arc::clone(&stopped);
            std::thread::spawn(move || {
                while !stopped.load(Ordering::Relaxed) {
                    spin_loop();
                }
            });
        }
        Load(stopped)
    }
}

impl Drop for Load {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

#[tokio::test]
async fn repeated_requests_have_the_same_ids_on_a_busy_machine() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("requests.jsonl");
    let before = Server::with_journal(&path).await;
    let client = before.client();
    for _ in 0..100 {
        webset(&client, 1).await;
    }
    let all = json!({ "limit": 100 });
    let created = ids(&client.ok("websets.list", all.clone()).await);
    assert_eq!(created.len(), 100);
    for _ in 0..3 {
        let load = Load::start();
        let after = Server::with_journal(&path).await;
        drop(load);
        let repeated = after.client().ok("websets.list", all.clone()).await;
        assert_eq!(ids(&repeated), created);
    }
}
