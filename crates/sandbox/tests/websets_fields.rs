//! Newer arguments of websets, and searches and enrichments that do not complete.

use serde_json::{Value, json};

use crate::support::Server;

#[tokio::test]
async fn websets_have_titles_that_can_be_searched() {
    let server = Server::start().await;
    let client = server.client();
    let search = json!({ "query": "startups in Berlin", "count": 2 });
    let titled = client
        .ok(
            "websets.create",
            json!({ "title": "Lead List", "search": search }),
        )
        .await;
    assert_eq!(titled["title"], "Lead List");
    let named = client
        .ok("websets.create", json!({ "externalId": "crm-7" }))
        .await;
    let renamed = client
        .ok(
            "websets.update",
            json!({ "websetId": named["id"], "title": "Partners" }),
        )
        .await;
    assert_eq!(renamed["title"], "Partners");
    for (text, expected) in [
        ("lead", vec![&titled]),
        ("berlin", vec![&titled]),
        ("CRM", vec![&named]),
        ("partner", vec![&named]),
        ("nothing", vec![]),
    ] {
        let page = client.ok("websets.list", json!({ "search": text })).await;
        let ids: Vec<&Value> = page["data"]
            .as_array()
            .unwrap()
            .iter()
            .map(|webset| &webset["id"])
            .collect();
        let expected: Vec<&Value> = expected.iter().map(|webset| &webset["id"]).collect();
        assert_eq!(ids, expected, "{text}");
    }
    assert_eq!(
        client
            .fails("websets.create", json!({ "title": "" }))
            .await
            .0,
        400
    );
}

#[tokio::test]
async fn imported_items_are_evaluated_on_request() {
    let server = Server::start().await;
    let client = server.client();
    let search = json!({ "query": "startups in Berlin", "count": 3, "maxPeoplePerCompany": 2 });
    let source = client
        .ok("websets.create", json!({ "search": search }))
        .await;
    assert_eq!(source["searches"][0]["maxPeoplePerCompany"], 2);
    client.advance(20_000).await;
    for evaluate in [false, true] {
        let import = json!([{ "source": "webset", "id": source["id"], "evaluate": evaluate }]);
        let criteria = json!([{ "description": "Is profitable" }]);
        let search = json!({ "query": "startups", "count": 1, "criteria": criteria });
        let webset = client
            .ok(
                "websets.create",
                json!({ "import": import, "search": search }),
            )
            .await;
        let items = client
            .ok("items.list", json!({ "websetId": webset["id"] }))
            .await;
        let item = &items["data"][0];
        assert_eq!(item["source"], "import");
        let criterion = item["evaluations"][0]["criterion"].as_str();
        assert_eq!(criterion, evaluate.then_some("Is profitable"));
        assert_eq!(webset["searches"][0]["maxPeoplePerCompany"], Value::Null);
    }
}

#[tokio::test]
async fn searches_and_enrichments_can_fail() {
    let server = Server::start().await;
    let client = server.client();
    for (query, status, reason) in [
        ("startups sandbox-fail", "failed", None),
        (
            "startups sandbox-out-of-credits",
            "canceled",
            Some("out_of_credits"),
        ),
    ] {
        let enrichments = json!([{ "description": "Email" }, { "description": "sandbox-fail" }]);
        let search = json!({ "query": query, "count": 4 });
        let args = json!({ "search": search, "enrichments": enrichments });
        let webset = client.ok("websets.create", args).await;
        client.advance(20_000).await;
        // The published schema does not list the status `failed` yet, so it is not validated here.
        let path = format!("/websets/v0/websets/{}", webset["id"].as_str().unwrap());
        let done = client
            .send("GET", &format!("{path}?expand=items"), None)
            .await
            .json();
        assert_eq!(done["status"], "idle");
        let search = &done["searches"][0];
        assert_eq!(search["status"], status);
        assert_eq!(search["canceledReason"].as_str(), reason);
        assert_eq!(search["canceledAt"].is_string(), reason.is_some());
        assert_eq!(done["enrichments"][0]["status"], "completed");
        assert_eq!(done["enrichments"][1]["status"], "failed");
        let results = &done["items"][0]["enrichments"];
        assert_eq!(results[0]["status"], "completed");
        assert_eq!(
            (results[1]["status"].as_str(), &results[1]["result"]),
            (Some("failed"), &Value::Null)
        );
    }
}
