//! A missing key: asked for on a page, never in a form, because whatever stands in a form passes through
//! the client and its model.

use std::time::Duration;

use tokio::time::timeout;

use super::super::{Call, Catalogue, Outcome};
use crate::operations::client::Visit;
use exa_mcp_exa_client::{KeyOwner, KeyPool};

/// How long a call waits for the key after the user went to the page. Many clients give a call up after
/// a minute; the page stays open longer.
const WAIT: Duration = Duration::from_secs(45);

const MESSAGE: &str = "The server needs your Exa API key. Enter it on this page of your own computer; neither the client \
                       nor its model sees it.";

impl Catalogue {
    /// The same tools without a key; it would have to come from these.
    #[must_use]
    pub fn without_key(&self, holder: KeyOwner) -> Self {
        let caller = self.caller.with_keys(KeyPool::paced([], None, holder));
        Self {
            library: self.library.with_caller(caller.clone()),
            caller,
            ..self.clone()
        }
    }

    /// Goes on if there is a key, or once there is one.
    pub(in super::super) async fn demand_key(&self, call: &Call) -> Result<(), Box<Outcome>> {
        let keys = self.caller.keys();
        if !keys.is_empty() {
            return Ok(());
        }
        let desk = self.desk.as_ref().filter(|_| call.client.powers().urls);
        let Some(desk) = desk else {
            return Err(Box::new(Outcome::no_key(keys.owner())));
        };
        let _turn = desk.turn().await;
        // Another call may have asked meanwhile.
        if !keys.is_empty() {
            return Ok(());
        }
        let page = desk
            .page()
            .await
            .map_err(|error| Box::new(Outcome::key_not_given(&error.to_string())))?;
        let visit = Visit {
            message: MESSAGE.to_owned(),
            url: page.url.clone(),
            id: page.id.clone(),
        };
        if let Err(why) = call.client.visit(visit.clone()).await {
            page.close();
            let why = format!("Asked for it, but {why}.");
            return Err(Box::new(Outcome::key_not_given(&why)));
        }
        let wait = self.manners.patience.unwrap_or(WAIT).min(WAIT);
        match timeout(wait, page.is_done()).await {
            Ok(true) => {
                call.client.visited(&page.id);
                Ok(())
            }
            Ok(false) => {
                let why = "The page where it can be entered is closed; call again for a new one.";
                Err(Box::new(Outcome::key_not_given(why)))
            }
            Err(_) => Err(Box::new(Outcome::visit_first(&visit))),
        }
    }
}
