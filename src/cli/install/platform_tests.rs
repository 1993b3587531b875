use super::super::clients::CLIENTS;
use super::*;

fn paths(platform: Platform, variables: &[(&str, &str)]) -> Vec<String> {
    let variables = variables.iter();
    let variables = variables.map(|(name, value)| ((*name).to_owned(), (*value).to_owned()));
    let machine = Machine {
        platform,
        variables: variables.collect(),
    };
    let paths = CLIENTS
        .iter()
        .filter_map(|client| machine.resolve(client.file));
    paths.map(|path| path.display().to_string()).collect()
}

#[test]
fn linux() {
    let expected = [
        "/home/ana/.claude.json",
        "/home/ana/.config/Claude/claude_desktop_config.json",
        "/home/ana/.cursor/mcp.json",
        "/home/ana/.config/Code/User/mcp.json",
        "/home/ana/.codex/config.toml",
        "/home/ana/.gemini/settings.json",
        "/home/ana/.config/zed/settings.json",
        "/home/ana/.codeium/windsurf/mcp_config.json",
        "/home/ana/.lmstudio/mcp.json",
    ];
    assert_eq!(paths(Platform::Linux, &[("HOME", "/home/ana/")]), expected);
    let relative = [("HOME", "/home/ana"), ("XDG_CONFIG_HOME", "relative")];
    assert_eq!(paths(Platform::Linux, &relative), expected);
    let moved = [("HOME", "/home/ana"), ("XDG_CONFIG_HOME", "/cfg")];
    let moved = paths(Platform::Linux, &moved);
    assert!(
        moved.contains(&"/cfg/Code/User/mcp.json".to_owned()),
        "{moved:?}"
    );
    assert!(
        moved.contains(&"/cfg/zed/settings.json".to_owned()),
        "{moved:?}"
    );
    assert_eq!(paths(Platform::Linux, &[]), [""; 0]);
}

#[test]
fn macos() {
    // XDG_CONFIG_HOME is not for applications there.
    let variables = [("HOME", "/Users/ana"), ("XDG_CONFIG_HOME", "/cfg")];
    assert_eq!(
        paths(Platform::MacOs, &variables),
        [
            "/Users/ana/.claude.json",
            "/Users/ana/Library/Application Support/Claude/claude_desktop_config.json",
            "/Users/ana/.cursor/mcp.json",
            "/Users/ana/Library/Application Support/Code/User/mcp.json",
            "/Users/ana/.codex/config.toml",
            "/Users/ana/.gemini/settings.json",
            "/Users/ana/.config/zed/settings.json",
            "/Users/ana/.codeium/windsurf/mcp_config.json",
            "/Users/ana/.lmstudio/mcp.json",
        ]
    );
}

#[test]
fn windows() {
    let expected = [
        r"C:\Users\ana\.claude.json",
        r"C:\Users\ana\AppData\Roaming\Claude\claude_desktop_config.json",
        r"C:\Users\ana\.cursor\mcp.json",
        r"C:\Users\ana\AppData\Roaming\Code\User\mcp.json",
        r"C:\Users\ana\.codex\config.toml",
        r"C:\Users\ana\.gemini\settings.json",
        r"C:\Users\ana\AppData\Roaming\Zed\settings.json",
        r"C:\Users\ana\.codeium\windsurf\mcp_config.json",
        r"C:\Users\ana\.lmstudio\mcp.json",
    ];
    let home = ("USERPROFILE", r"C:\Users\ana");
    assert_eq!(paths(Platform::Windows, &[home]), expected);
    let redirected = [home, ("APPDATA", r"D:\Roaming"), ("HOME", "/c/other")];
    let redirected = paths(Platform::Windows, &redirected);
    assert!(
        redirected.contains(&r"D:\Roaming\Zed\settings.json".to_owned()),
        "{redirected:?}"
    );
    assert!(redirected.contains(&r"C:\Users\ana\.cursor\mcp.json".to_owned()));
}

/// The separator of Windows is an ordinary character here, so each path is one name.
#[test]
#[cfg(unix)]
#[allow(clippy::unwrap_used, clippy::indexing_slicing)]
fn packaged_claude_desktop() {
    let folder = tempfile::tempdir().unwrap();
    let local = folder.path().join("Local");
    let local = local.to_str().unwrap();
    let path = || {
        let paths = paths(
            Platform::Windows,
            &[("USERPROFILE", r"C:\Users\ana"), ("LOCALAPPDATA", local)],
        );
        paths[1].clone()
    };
    let ordinary = r"C:\Users\ana\AppData\Roaming\Claude\claude_desktop_config.json";
    assert_eq!(path(), ordinary);
    let add = |package: &str| {
        std::fs::create_dir_all(format!("{local}\\Packages/{package}")).unwrap();
        let directory = format!("{local}\\Packages\\{package}\\LocalCache\\Roaming\\Claude");
        std::fs::create_dir(&directory).unwrap();
        format!("{directory}\\claude_desktop_config.json")
    };
    std::fs::create_dir_all(format!("{local}\\Packages/Claude_unused")).unwrap();
    assert_eq!(path(), ordinary);
    let first = add("Claude_a");
    assert_eq!(path(), first);
    let second = add("Claude_b");
    assert_eq!(path(), first);
    std::fs::write(&second, "{}").unwrap();
    assert_eq!(path(), second);
}
