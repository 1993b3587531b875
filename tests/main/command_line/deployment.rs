//! The compose file and the systemd unit.

use std::fs;
use std::process::Command;

use serde_json::Value;

fn read_file(path: &str) -> String {
    let path = format!("{}/{path}", env!("CARGO_MANIFEST_DIR"));
    fs::read_to_string(&path).unwrap_or_else(|error| panic!("{path}: {error}"))
}

fn texts(value: &Value) -> Vec<&str> {
    let items = value.as_array().into_iter().flatten();
    items.filter_map(Value::as_str).collect()
}

#[test]
fn compose_services_are_restricted_and_limited() {
    let compose: Value = serde_saphyr::from_str(&read_file("compose.yaml")).expect("YAML");
    let services = compose["services"].as_object().expect("services");
    assert_eq!(services.len(), 3);
    for (name, service) in services {
        assert_eq!(service["read_only"], true, "{name}");
        assert_eq!(texts(&service["cap_drop"]), ["ALL"], "{name}");
        let options = texts(&service["security_opt"]);
        assert_eq!(options, ["no-new-privileges:true"], "{name}");
        assert!(service["mem_limit"].is_string(), "{name}");
        assert!(service["pids_limit"].is_u64(), "{name}");
        // The tag must name one release, such as 1.2.3.
        let image = service["image"].as_str().unwrap_or_default();
        let (_, tag) = image
            .split_once(':')
            .unwrap_or_else(|| panic!("{name}: {image}"));
        let version = tag.split('-').next().unwrap_or_default();
        assert_eq!(version.split('.').count(), 3, "{name}: {image}");
    }
}

#[test]
fn compose_file_has_no_secret_in_a_variable() {
    let compose: Value = serde_saphyr::from_str(&read_file("compose.yaml")).expect("YAML");
    let declared = compose["secrets"].as_object().expect("secrets");
    let secrets = [
        "EXA_API_KEY",
        "EXA_API_KEYS",
        "MCP_AUTH_TOKEN",
        "USER_TOKENS",
        "EXA_MCP_SECRET",
        "EXA_MCP_STORE",
    ];
    for (name, service) in compose["services"].as_object().expect("services") {
        let used = texts(&service["secrets"]);
        assert!(
            used.iter().all(|used| declared.contains_key(*used)),
            "{name}: {used:?}"
        );
        let environment = service["environment"].as_object().into_iter().flatten();
        for (variable, value) in environment {
            let value = value.as_str().unwrap_or_default();
            assert!(!value.contains("PASSWORD"), "{name}: {variable}");
            if secrets.contains(&variable.as_str()) {
                assert_eq!(value, "", "{name}: {variable}");
            }
            if let Some(secret) = variable.strip_suffix("_FILE") {
                assert!(secrets.contains(&secret), "{name}: {variable}");
                let file = value.strip_prefix("/run/secrets/").unwrap_or_default();
                assert!(used.contains(&file), "{name}: {variable} names {value}");
            }
        }
    }
    for list in [".gitignore", ".dockerignore"] {
        assert!(read_file(list).contains("secrets"), "{list}");
    }
}

#[test]
fn systemd_unit_is_restricted_and_limited() {
    let unit = read_file("deploy/exa-mcp-server.service");
    for line in [
        "ProtectProc=invisible",
        "ProcSubset=pid",
        "PrivateUsers=yes",
        "NoNewPrivileges=yes",
        "CapabilityBoundingSet=",
        "ProtectSystem=strict",
        "DynamicUser=yes",
        "MemoryMax=1G",
    ] {
        assert!(unit.lines().any(|own| own == line), "{line}");
    }
    let secrets = unit
        .lines()
        .filter_map(|line| line.strip_prefix("Environment="));
    for secret in secrets {
        let (variable, path) = secret.split_once('=').expect("a value");
        assert!(variable.ends_with("_FILE"), "{secret}");
        let credential = path.strip_prefix("%d/").expect("a credential");
        assert!(
            unit.contains(&format!("LoadCredential={credential}:")),
            "{secret}"
        );
    }
    // Where systemd is installed, it verifies the unit.
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("exa-mcp-server.service");
    let program = env!("CARGO_BIN_EXE_exa-mcp-server");
    let installed = unit.replace("/usr/local/bin/exa-mcp-server", program);
    assert!(installed.contains(program));
    fs::write(&path, installed).expect("a file");
    let Ok(verified) = Command::new("systemd-analyze")
        .arg("verify")
        .arg(&path)
        .output()
    else {
        return;
    };
    let stderr = String::from_utf8_lossy(&verified.stderr);
    assert!(verified.status.success(), "{stderr}");
    assert!(!stderr.contains("exa-mcp-server.service"), "{stderr}");
}
