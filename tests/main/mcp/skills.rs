//! The skills extension, in versions with and without a handshake.

use std::fs;
use std::path::Path;

use serde_json::{Value, json};
use sha2::{Digest, Sha256};

use crate::support::{McpServer, Program, STATELESS_VERSION};

const VERSIONS: [&str; 4] = ["2024-11-05", "2025-06-18", "2025-11-25", STATELESS_VERSION];
const WEBSET: &str = "skill://build-a-webset/SKILL.md";

/// Sends requests of a version.
struct Client {
    server: McpServer,
    version: &'static str,
}

impl Client {
    fn new(version: &'static str) -> Self {
        let server = McpServer::connect(Program::new(["--sandbox"]), version);
        Self { server, version }
    }

    fn request(&mut self, method: &str, params: Value) -> Value {
        self.server.request(method, params)
    }

    fn result(&mut self, method: &str, params: Value) -> Value {
        let response = self.request(method, params);
        let result = &response["result"];
        assert!(result.is_object(), "{}: {response}", self.version);
        let is_stateless = self.version == STATELESS_VERSION;
        for field in ["ttlMs", "cacheScope", "resultType"] {
            assert_eq!(result.get(field).is_some(), is_stateless, "{result}");
        }
        result.clone()
    }
}

fn folder(uri: &str) -> std::path::PathBuf {
    let path = uri.strip_prefix("skill://").unwrap();
    Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("skills")
        .join(path)
}

#[test]
fn every_listed_file_can_be_read_and_has_its_digest() {
    for version in VERSIONS {
        let mut client = Client::new(version);
        let skills = client.result("skills/list", json!({}))["skills"].clone();
        let skills = skills.as_array().unwrap();
        assert_eq!(skills.len(), 6);
        for skill in skills {
            let got = client.result("skills/get", json!({"uri": skill["uri"]}));
            assert_eq!(&got["skill"], skill);
            for file in skill["resources"].as_array().unwrap() {
                let uri = file["uri"].as_str().unwrap();
                let read = client.result("resources/read", json!({"uri": uri}));
                let content = &read["contents"][0];
                assert_eq!(content["mimeType"], "text/markdown");
                let text = content["text"].as_str().unwrap();
                assert_eq!(text, fs::read_to_string(folder(uri)).unwrap());
                let digest = Sha256::digest(text.as_bytes());
                let digest: String = digest.iter().map(|byte| format!("{byte:02x}")).collect();
                assert_eq!(file["digest"], format!("sha256:{digest}"));
                assert_eq!(file["size"], text.len());
            }
        }
    }
}

#[test]
fn manifests_are_listed_as_resources() {
    let mut client = Client::new(STATELESS_VERSION);
    let skills = client.result("skills/list", json!({}))["skills"].clone();
    let listed = client.result("resources/list", json!({}))["resources"].clone();
    let listed = listed.as_array().unwrap();
    for skill in skills.as_array().unwrap() {
        let resource = listed
            .iter()
            .find(|resource| resource["uri"] == skill["uri"]);
        let resource = resource.unwrap();
        for field in ["name", "description"] {
            assert_eq!(resource[field], skill["frontmatter"][field]);
        }
    }
}

#[test]
fn directories_are_read_level_by_level() {
    for version in VERSIONS {
        let mut client = Client::new(version);
        let mut read = |uri: &str| client.result("resources/directory/read", json!({"uri": uri}));
        let top = read("skill://build-a-webset");
        let children = top["resources"].as_array().unwrap();
        assert_eq!(children[0]["uri"], WEBSET);
        assert_eq!(children[1]["mimeType"], "inode/directory");
        let below = read(children[1]["uri"].as_str().unwrap());
        assert_eq!(below["resources"][0]["name"], "criteria.md");
    }
}

#[test]
fn unknown_skills_are_invalid_params() {
    for version in VERSIONS {
        let mut client = Client::new(version);
        for (method, params) in [
            ("skills/get", json!({"uri": "skill://none/SKILL.md"})),
            (
                "skills/get",
                json!({"uri": "skill://build-a-webset/references/criteria.md"}),
            ),
            ("skills/get", json!({})),
            ("skills/get", json!({"uri": 3})),
            ("skills/list", json!({"cursor": "page-1"})),
            ("skills/list", json!({"cursor": 1})),
            ("resources/directory/read", json!({"uri": WEBSET})),
            ("resources/directory/read", json!({"uri": "skill://none"})),
            (
                "resources/directory/read",
                json!({"uri": "exa://operations"}),
            ),
        ] {
            let response = client.request(method, params);
            assert_eq!(
                response["error"]["code"], -32602,
                "{version} {method}: {response}"
            );
        }
        let unknown = client.request("resources/read", json!({"uri": "skill://none/SKILL.md"}));
        let code = if version == STATELESS_VERSION {
            -32602
        } else {
            -32002
        };
        assert_eq!(unknown["error"]["code"], code, "{version}: {unknown}");
    }
}

#[test]
fn clients_without_a_handshake_have_to_declare_their_version() {
    let mut server = McpServer::start(Program::new(["--sandbox"]));
    for method in ["skills/list", "resources/directory/read"] {
        let response = server.request(method, json!({}));
        let message = response["error"]["message"].to_string();
        assert!(message.contains("requires a handshake"), "{response}");
    }
}
