//! The Homebrew formula and the entry of Docker's catalog. Both name files of a release, so a release fills in what is
//! only known then.

use std::fmt::Write;

use crate::GeneratedFile;
use crate::manifest::{Manifest, Target, Variable};

/// Returns the template of the formula. `packaging/formula` fills in the checksums.
pub(crate) fn formula(manifest: &Manifest) -> GeneratedFile {
    let mut text = format!(
        "# Written from packaging/manifest.toml by exa-mcp-packaging.\n\
         class {} < Formula\n  desc {:?}\n  homepage {:?}\n  version {:?}\n  license {:?}\n",
        class_name(&manifest.name),
        manifest.summary,
        manifest.repository,
        manifest.version,
        manifest.license,
    );
    for (os, block) in [("darwin", "on_macos"), ("linux", "on_linux")] {
        let _ = write!(text, "\n  {block} do\n");
        for (cpu, inner) in [("arm64", "on_arm"), ("x64", "on_intel")] {
            let found = manifest.targets.iter().find(|target| {
                target.os == os && target.cpu == cpu && target.libc.as_deref() != Some("musl")
            });
            if let Some(target) = found {
                let _ = write!(
                    text,
                    "    {inner} do\n      url {:?}\n      sha256 \"@{}@\"\n    end\n",
                    archive_url(manifest, target),
                    archive(manifest, target),
                );
            }
        }
        text.push_str("  end\n");
    }
    let _ = write!(
        text,
        "\n  def install\n    bin.install \"{0}\"\n    \
         generate_completions_from_executable(bin/\"{0}\", \"completions\")\n  end\n\n  \
         test do\n    assert_match \"{0} #{{version}}\", shell_output(\"#{{bin}}/{0} --version\")\n    \
         system bin/\"{0}\", \"--sandbox\", \"tools\"\n  end\nend\n",
        manifest.name
    );
    GeneratedFile {
        path: "packaging/homebrew/exa-mcp-server.rb".into(),
        content: text,
    }
}

/// Returns the entry of Docker's catalog. A release fills in the commit.
pub(crate) fn docker_entry(manifest: &Manifest) -> GeneratedFile {
    let tags: String = manifest
        .keywords
        .iter()
        .fold(String::new(), |tags, keyword| {
            format!("{tags}    - {keyword}\n")
        });
    let name = &manifest.docker_name;
    let mut text = format!(
        "name: {name}\nimage: {}\ntype: server\nmeta:\n  category: search\n  tags:\n{tags}about:\n  \
         title: {}\n  description: {:?}\n  icon: {}\nsource:\n  project: {}\n  commit: \"@COMMIT@\"\nrun:\n  \
         command: {}\nconfig:\n  description: Configure the connection to the Exa API\n  secrets:\n",
        manifest.docker_image,
        manifest.title,
        manifest.description,
        manifest.icon,
        manifest.repository,
        serde_json::Value::from(arguments(manifest)),
    );
    for variable in manifest.variables.iter().filter(|variable| variable.secret) {
        let _ = write!(
            text,
            "    - name: {name}.{}\n      env: {}\n      example: YOUR_KEY\n",
            variable.name.to_lowercase(),
            variable.name
        );
    }
    text.push_str("  env:\n");
    for variable in settings(manifest) {
        let key = variable.name.to_lowercase();
        let _ = write!(
            text,
            "    - name: {}\n      example: {:?}\n      value: \"{{{{{name}.{key}}}}}\"\n",
            variable.name,
            variable.default.as_deref().unwrap_or_default(),
        );
    }
    text.push_str("  parameters:\n    type: object\n    properties:\n");
    for variable in settings(manifest) {
        let _ = write!(
            text,
            "      {}:\n        type: string\n        description: {:?}\n",
            variable.name.to_lowercase(),
            variable.description,
        );
    }
    GeneratedFile {
        path: format!("packaging/docker/{name}/server.yaml").into(),
        content: text,
    }
}

/// Returns the arguments of the container. By default the image serves HTTP, and any argument replaces that.
fn arguments(manifest: &Manifest) -> Vec<String> {
    let variables = manifest.variables.iter();
    let flags =
        variables.filter_map(|variable| Some((variable.flag.clone()?, variable.default.clone()?)));
    flags.flat_map(|(flag, value)| [flag, value]).collect()
}

/// Returns the variables that the user may set.
fn settings(manifest: &Manifest) -> impl Iterator<Item = &Variable> {
    let variables = manifest.variables.iter();
    variables.filter(|variable| !variable.secret && variable.flag.is_none())
}

/// Returns the name of a target's archive in a release.
fn archive(manifest: &Manifest, target: &Target) -> String {
    format!("{}-{}.tar.gz", manifest.name, target.triple)
}

fn archive_url(manifest: &Manifest, target: &Target) -> String {
    format!(
        "{}/releases/download/v{}/{}",
        manifest.repository,
        manifest.version,
        archive(manifest, target)
    )
}

/// Returns the class that Homebrew expects for a formula of this name.
fn class_name(name: &str) -> String {
    name.split('-')
        .map(|part| {
            let mut letters = part.chars();
            let first = letters.next().map(|letter| letter.to_ascii_uppercase());
            first.into_iter().chain(letters).collect::<String>()
        })
        .collect()
}
