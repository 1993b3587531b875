//! Arguments of the command line reach the API, and its responses are printed.

mod generated;
mod numbers;
mod responses;
mod table;

pub(crate) use table::covered_operations;
