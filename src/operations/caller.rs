//! Calling an operation: checked, sent, answered.

use std::time::{Duration, Instant};

use serde_json::{Map, Value};

use super::{CallError, Operation, check, input_schema, split};
use crate::exa::{Answer, ApiKey, CallContext, ExaError, ExaHttp};

/// Calls operations with one key.
#[derive(Clone)]
pub struct Caller {
    http: ExaHttp,
    key: Option<ApiKey>,
}

/// An answered call.
#[derive(Debug)]
pub struct Called {
    /// What Exa said.
    pub answer: Answer,
    /// The arguments as they were sent.
    pub arguments: Map<String, Value>,
    /// What was put right in the arguments, a sentence each.
    pub mended: Vec<String>,
}

/// Why there is no answer.
#[derive(Debug)]
pub enum Refusal {
    /// There is no key to call with.
    NoKey,
    /// The arguments do not fit; nothing was sent.
    Arguments(Box<check::Refused>),
    /// The API or the way to it failed.
    Exa(Box<ExaError>),
}

impl Caller {
    /// A caller; without a key every call is refused.
    pub fn new(http: ExaHttp, key: Option<ApiKey>) -> Self {
        Self { http, key }
    }

    /// Mends and checks the arguments, then calls.
    pub async fn call(
        &self,
        operation: &'static Operation,
        arguments: Value,
    ) -> Result<Called, Refusal> {
        let checked = Self::check(operation, arguments)?;
        self.send(operation, checked).await
    }

    /// Mends and checks the arguments of a call.
    pub fn check(
        operation: &'static Operation,
        arguments: Value,
    ) -> Result<check::Checked, Refusal> {
        checked(operation, arguments).map_err(|refused| Refusal::Arguments(Box::new(refused)))
    }

    /// Calls with arguments that are known to fit.
    pub async fn send(
        &self,
        operation: &'static Operation,
        checked: check::Checked,
    ) -> Result<Called, Refusal> {
        let key = self.key.clone().ok_or(Refusal::NoKey)?;
        let timeout = Duration::from_secs(operation.timeout_seconds);
        let context = CallContext::new(self.http.clone(), key.clone(), timeout);
        let started = Instant::now();
        let outcome = match split(operation, checked.arguments.clone().into()) {
            Ok(parts) => (operation.call)(context, parts).await,
            Err(error) => Err(error.into()),
        };
        log(operation, &outcome, started.elapsed());
        match outcome {
            Ok(answer) => Ok(Called {
                // Some proxies echo headers; whoever reads the answer must not learn the key.
                answer: Answer {
                    value: key.redact_json(answer.value),
                    ..answer
                },
                arguments: checked.arguments,
                mended: checked.mended,
            }),
            Err(CallError::Exa(error)) => Err(Refusal::Exa(Box::new(error))),
            Err(CallError::Arguments(error)) => {
                let problems = error
                    .problems
                    .into_iter()
                    .map(|text| check::Problem {
                        place: "arguments".to_owned(),
                        text,
                    })
                    .collect();
                Err(Refusal::Arguments(Box::new(refused(operation, problems))))
            }
        }
    }
}

/// One line a call: what, how long, how it ended; never what was asked or answered.
fn log(operation: &Operation, outcome: &Result<Answer, CallError>, elapsed: Duration) {
    let (name, milliseconds) = (operation.name, elapsed.as_millis());
    match outcome {
        Ok(answer) => {
            let request_id = answer.request_id.as_deref().unwrap_or("-");
            tracing::info!(
                operation = name,
                status = answer.status,
                milliseconds,
                request_id,
                "answered"
            );
        }
        Err(CallError::Exa(error)) => {
            let request_id = error.request_id.as_deref().unwrap_or("-");
            tracing::warn!(
                operation = name,
                status = error.status,
                milliseconds,
                request_id,
                "failed"
            );
        }
        Err(CallError::Arguments(_)) => tracing::info!(operation = name, "refused"),
    }
}

fn checked(
    operation: &'static Operation,
    arguments: Value,
) -> Result<check::Checked, check::Refused> {
    let aliases: Vec<(&str, &str)> = operation
        .arguments
        .iter()
        .flat_map(|argument| argument.aliases.iter().map(|alias| (*alias, argument.name)))
        .collect();
    let subject = check::Subject {
        operation: operation.name,
        input_schema: input_schema(operation),
        aliases: &aliases,
    };
    check::check(&subject, arguments)
}

fn refused(operation: &'static Operation, problems: Vec<check::Problem>) -> check::Refused {
    check::Refused {
        problems,
        example: check::example(operation.name, input_schema(operation)),
        hints: check::hints(operation.name)
            .iter()
            .map(|hint| (*hint).to_owned())
            .collect(),
    }
}
