//! Reads a file that Exa has stored, such as the results of a batch.

use std::future::Future;
use std::time::Duration;

use tokio::time::timeout;

use super::{OperationError, OperationExecutor};
use exa_mcp_exa_client::{ExaError, root_cause, stored_file};

/// The largest file that is read, in bytes.
const MAX_BYTES: usize = 512 * 1024 * 1024;

/// How long the host may send nothing.
const MAX_PAUSE: Duration = Duration::from_secs(60);

impl OperationExecutor {
    /// Returns the text at an address from a response of Exa. No key is sent, and only public hosts are read.
    pub(crate) async fn download(&self, address: &str) -> Result<String, OperationError> {
        self.check_network()?;
        let text = self.read_text(address).await;
        text.map_err(|message| OperationError::Exa(Box::new(ExaError::upload(message))))
    }

    async fn read_text(&self, address: &str) -> Result<String, String> {
        let (client, url) = stored_file(self.http(), address)
            .map_err(|error| format!("The results cannot be read: {}.", error.message))?;
        let mut response = within_pause(client.get(url).send()).await?;
        if !response.status().is_success() {
            let status = response.status();
            return Err(format!("The results cannot be read: HTTP status {status}."));
        }
        let mut bytes = Vec::new();
        while let Some(chunk) = within_pause(response.chunk()).await? {
            if bytes.len() + chunk.len() > MAX_BYTES {
                return Err(format!("The results exceed {MAX_BYTES} bytes."));
            }
            bytes.extend_from_slice(&chunk);
        }
        Ok(String::from_utf8_lossy(&bytes).into_owned())
    }
}

/// Waits for the next part of a response, but not longer than the host may send nothing.
async fn within_pause<T>(
    part: impl Future<Output = Result<T, reqwest::Error>>,
) -> Result<T, String> {
    match timeout(MAX_PAUSE, part).await {
        Ok(part) => {
            part.map_err(|error| format!("The results cannot be read: {}.", root_cause(&error)))
        }
        Err(_) => Err(format!(
            "The results cannot be read: their host sent nothing for {} seconds.",
            MAX_PAUSE.as_secs()
        )),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn a_host_that_sends_nothing_is_given_up() {
        let silent = std::future::pending::<Result<(), reqwest::Error>>();
        let ended = timeout(2 * MAX_PAUSE, within_pause(silent)).await;
        let message = "The results cannot be read: their host sent nothing for 60 seconds.";
        assert_eq!(ended, Ok(Err(message.to_owned())));
    }
}
