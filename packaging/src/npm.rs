//! The npm packages: a launcher, and one package for each platform.

use std::path::Path;

use serde_json::{Map, Value, json};

use crate::GeneratedFile;
use crate::manifest::{Manifest, Target};

pub(crate) fn files(manifest: &Manifest) -> Vec<GeneratedFile> {
    let folder = Path::new("packaging/npm");
    let platforms = manifest.targets.iter().map(|target| {
        let path = folder.join(target.npm_suffix()).join("package.json");
        crate::json(path, &platform_package(manifest, target))
    });
    let launcher = crate::json(
        folder.join("launcher/package.json"),
        &launcher_package(manifest),
    );
    std::iter::once(launcher).chain(platforms).collect()
}

/// Returns the name of the package with the program for `target`.
fn platform_name(manifest: &Manifest, target: &Target) -> String {
    format!("{}-{}", manifest.npm_name, target.npm_suffix())
}

fn launcher_package(manifest: &Manifest) -> Value {
    let platforms: Map<String, Value> = manifest
        .targets
        .iter()
        .map(|target| {
            (
                platform_name(manifest, target),
                Value::from(manifest.version.as_str()),
            )
        })
        .collect();
    let mut package = common_fields(manifest, &manifest.npm_name, &manifest.description);
    package.insert("mcpName".to_owned(), json!(manifest.registry_name));
    package.insert("keywords".to_owned(), json!(manifest.keywords));
    package.insert(
        "bin".to_owned(),
        json!({ &manifest.npm_name: "bin/launcher.js" }),
    );
    package.insert("files".to_owned(), json!(["bin"]));
    package.insert("engines".to_owned(), json!({ "node": ">=18" }));
    package.insert("optionalDependencies".to_owned(), Value::Object(platforms));
    Value::Object(package)
}

fn platform_package(manifest: &Manifest, target: &Target) -> Value {
    let description = format!(
        "The program of {} for {}.",
        manifest.npm_name, target.triple
    );
    let mut package = common_fields(manifest, &platform_name(manifest, target), &description);
    package.insert("os".to_owned(), json!([target.os]));
    package.insert("cpu".to_owned(), json!([target.cpu]));
    if let Some(libc) = &target.libc {
        package.insert("libc".to_owned(), json!([libc]));
    }
    package.insert("files".to_owned(), json!(["bin"]));
    Value::Object(package)
}

fn common_fields(manifest: &Manifest, name: &str, description: &str) -> Map<String, Value> {
    let fields = [
        ("name", json!(name)),
        ("version", json!(manifest.version)),
        ("description", json!(description)),
        ("license", json!(manifest.license)),
        (
            "repository",
            json!({ "type": "git", "url": format!("git+{}.git", manifest.repository) }),
        ),
    ];
    fields
        .into_iter()
        .map(|(key, value)| (key.to_owned(), value))
        .collect()
}
