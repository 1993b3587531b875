//! Turns the specs in `data-design/` into clients, operations, schemas and snapshots.
//!
//! One module a stage: load → overlay → references → operations → schemas → lower → clients →
//! glue → snapshots → output.
pub mod error;
pub mod load;
pub mod overlay;
