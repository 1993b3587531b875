//! Keeps each kind of key at the hosts that take it.

use crate::error::{Error, Findings};
use crate::model::{ApiModel, Operation};

/// Leaves out operations at the host of an API that takes another kind of key: that host would receive the wrong key.
pub fn omit_misdirected(
    apis: &[ApiModel],
    operations: &mut Vec<Operation>,
    findings: &mut Findings,
) {
    operations.retain(|operation| {
        let Some(own) = apis.iter().find(|api| api.name == operation.api) else {
            return true;
        };
        let other = apis.iter().find(|other| {
            other.key != own.key
                && other.base_url == operation.base_url
                && own.base_url != operation.base_url
        });
        let Some(other) = other else {
            return true;
        };
        let what = format!("`{}` omitted", operation.name);
        let error = Error::Document {
            file: own.file.clone(),
            pointer: format!("#{}", operation.pointer),
            message: format!(
                "{} takes a {} for the API `{}`, and `{}` takes a {}; move the operation to the API of its host",
                other.base_url,
                other.key.name(),
                other.name,
                own.name,
                own.key.name()
            ),
        };
        findings.omit(&own.file, format!("#{}", operation.pointer), &what, error);
        false
    });
}
