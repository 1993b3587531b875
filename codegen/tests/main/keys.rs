//! APIs with another kind of key, and with a tool set of their own.

use serde_json::json;

use crate::support::{DesignCopy, snapshot};

const SPEC: &str = r#"
openapi: 3.1.0
info: { title: Management, version: "1" }
servers: [{ url: https://manage.example/v1 }]
security: [{ key: [] }]
paths:
  /members:
    get:
      operationId: listMembers
      description: Lists the members.
      responses: { "200": { description: ok, content: { application/json: { schema: { type: object } } } } }
    post:
      operationId: createMember
      description: Creates a member.
      responses: { "200": { description: ok, content: { application/json: { schema: { type: object } } } } }
components:
  securitySchemes:
    key: { type: apiKey, in: header, name: x-api-key }
"#;

/// Returns a design with an API for admins.
fn managed() -> DesignCopy {
    let design = DesignCopy::new();
    design.write("managed.yaml", SPEC);
    design.edit("surface.yaml", |surface| {
        surface["apis"]["managed"] =
            json!({"spec": "managed.yaml", "key": "service", "set": "managers"});
        surface["names"]["GET /v1/members"] = json!("members.list");
        surface["names"]["POST /v1/members"] = json!("members.create");
        let entry = json!({"match": "POST /v1/members", "secret": true});
        surface["operations"].as_array_mut().unwrap().push(entry);
    });
    design
}

#[test]
fn an_api_states_its_kind_of_key() {
    let output = managed().generate().unwrap();
    let table = &output.files["generated/operations.rs"];
    let (_, managed) = table.split_once("pub static MANAGED: Api").unwrap();
    let (managed, _) = managed.split_once("};").unwrap();
    assert!(managed.contains("key: KeyKind::Service"), "{managed}");
    assert!(managed.contains("admin_only: true"), "{managed}");
    let (_, search) = table.split_once("pub static SEARCH: Api").unwrap();
    let (search, _) = search.split_once("};").unwrap();
    assert!(search.contains("key: KeyKind::Api"), "{search}");
    assert!(search.contains("admin_only: false"), "{search}");
    let created = snapshot(&output, "members.create");
    assert_eq!(created["key"], "service");
    assert_eq!(created["set"], "managers");
    assert_eq!(created["secret"], true);
    assert!(snapshot(&output, "search").get("key").is_none());
}

#[test]
fn its_operations_are_in_their_own_set_and_domain_only() {
    let design = managed();
    design.edit("surface.yaml", |surface| {
        let tools = &mut surface["tools"];
        tools["sets"]["classic"]
            .as_array_mut()
            .unwrap()
            .push(json!("members_list"));
        tools["dispatchers"].as_array_mut().unwrap().push(json!({
            "name": "manage_members", "title": "Members", "api": "managed", "intro": "Members."}));
        tools["named"].as_array_mut().unwrap().push(json!({
            "name": "my_members", "title": "Members", "description": "Lists the members.",
            "operation": "members.list", "arguments": []}));
        tools["hosts"][0]["operations"]
            .as_array_mut()
            .unwrap()
            .push(json!({
            "name": "list_members", "summary": "List members", "operation": "members.list"}));
    });
    let read = codegen::read(&design.root().join("data-design")).unwrap();
    let own = ["members_create", "members_list"];
    for (set, tools) in &read.tools.sets {
        let is_own = ["managers", "members"].contains(&set.as_str());
        for tool in own {
            assert_eq!(tools.iter().any(|it| it == tool), is_own, "{set} {tool}");
        }
    }
    let notices = &read.findings.notices;
    let host = &read.tools.tools["websets-sync"];
    assert!(!host.plan.operations().contains(&"members.list"));
    assert!(
        notices
            .iter()
            .any(|notice| notice.message.contains("`list_members` omitted")),
        "{notices:?}"
    );
    for tool in ["manage_members", "my_members"] {
        assert!(!read.tools.tools.contains_key(tool), "{tool}");
        let named = notices.iter().any(|notice| {
            notice.location == format!("tool {tool}") && notice.message.contains("`managers`")
        });
        assert!(named, "{notices:?}");
    }
    let ignored = |notice: &codegen::error::Notice| {
        notice.location == "tool classic" && notice.message.contains("`members_list`")
    };
    assert!(notices.iter().any(ignored));
}

#[test]
fn operations_at_the_host_of_another_kind_of_key_are_left_out() {
    for (api, at) in [
        ("exa-search-spec.yaml", "https://manage.example"),
        ("managed.yaml", "https://api.exa.ai"),
    ] {
        let design = managed();
        design.edit(api, |spec| {
            spec["paths"]["/misdirected"] = json!({
                "servers": [{"url": at}],
                "get": {"operationId": "getMisdirected", "description": "Goes astray.",
                    "responses": {"200": {"description": "ok"}}}});
        });
        let output = design.generate().unwrap();
        let table = &output.files["generated/operations.rs"];
        assert!(!table.contains("/misdirected"), "{api}");
        assert!(table.contains("members.list"), "{api}");
        let notice = output
            .notices
            .iter()
            .find(|it| it.location.contains("misdirected"));
        let notice = notice.unwrap_or_else(|| panic!("{:?}", output.notices));
        assert!(notice.message.contains(at), "{notice}");
        assert_eq!(output.omissions.len(), 1, "{:?}", output.omissions);
    }
}
