//! Leaves out operations for which no client can be generated.

use std::collections::BTreeMap;

use super::{GeneratedClient, generate};
use crate::error::{Error, Findings, Result};
use crate::glue;
use crate::load::Document;
use crate::lower::LoweringRules;
use crate::model::{ApiModel, Operation};

/// Generates the clients of all APIs. Removes and reports operations that have none.
pub fn generate_all(
    documents: &BTreeMap<String, Document>,
    apis: &[ApiModel],
    operations: &mut Vec<Operation>,
    findings: &mut Findings,
) -> Result<BTreeMap<String, GeneratedClient>> {
    let mut clients = BTreeMap::new();
    let mut rejected: Vec<(String, Error)> = Vec::new();
    for api in apis {
        let Some(document) = documents.get(&api.name) else {
            continue;
        };
        let own = operations.iter().filter(|it| it.api == api.name);
        let mut selection = Selection {
            document,
            api,
            rejected: Vec::new(),
        };
        let client = selection.client(own.collect())?;
        clients.insert(api.name.clone(), client);
        rejected.extend(selection.rejected);
    }
    for (name, error) in rejected {
        let Some(index) = operations.iter().position(|it| it.name == name) else {
            continue;
        };
        let operation = operations.remove(index);
        let file = apis.iter().find(|api| api.name == operation.api);
        findings.omit(
            file.map_or("", |api| &api.file),
            format!("#{}", operation.pointer),
            &format!("`{name}` omitted"),
            error,
        );
    }
    Ok(clients)
}

/// The search for the operations of one API that have a client.
struct Selection<'a> {
    document: &'a Document,
    api: &'a ApiModel,
    rejected: Vec<(String, Error)>,
}

impl Selection<'_> {
    fn client(&mut self, operations: Vec<&Operation>) -> Result<GeneratedClient> {
        let mut accepted = self.accepted(operations);
        loop {
            let client = self.generate(&accepted)?;
            let problems = accepted.iter().filter_map(|operation| {
                let error = glue::check(operation, self.api, &client).err()?;
                Some((operation.name.clone(), error))
            });
            let problems: Vec<_> = problems.collect();
            if problems.is_empty() {
                return Ok(client);
            }
            accepted.retain(|operation| problems.iter().all(|(name, _)| *name != operation.name));
            self.rejected.extend(problems);
        }
    }

    fn generate(&self, operations: &[&Operation]) -> Result<GeneratedClient> {
        let rules = LoweringRules::default();
        generate(self.document, self.api, operations, rules)
    }

    /// Returns the operations that together have a client, by halving those that do not.
    fn accepted<'o>(&mut self, operations: Vec<&'o Operation>) -> Vec<&'o Operation> {
        let Err(error) = self.generate(&operations) else {
            return operations;
        };
        if let [operation] = operations.as_slice() {
            self.rejected.push((operation.name.clone(), error));
            return Vec::new();
        }
        let (first, second) = operations.split_at(operations.len() / 2);
        let mut all = self.accepted(first.to_vec());
        let more = self.accepted(second.to_vec());
        all.extend(&more);
        if self.generate(&all).is_ok() {
            return all;
        }
        // Each half has a client but not both: add one operation at a time.
        all.truncate(all.len() - more.len());
        for operation in more {
            all.push(operation);
            if let Err(error) = self.generate(&all) {
                all.pop();
                self.rejected.push((operation.name.clone(), error));
            }
        }
        all
    }
}
