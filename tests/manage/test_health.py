"""Health and metrics."""

# BROKER-5

from prometheus_client.parser import text_string_to_metric_families

from delosmq.manage.control.host import Reason
from tests.manage.support import Api, succeeded


async def test_live_and_ready_need_no_login(api: Api):
    up = {"status": "UP", "detail": "", "reasons": [], "role": "primary-only"}
    assert succeeded(await api.anonymous.get("/health/live")) == up
    assert succeeded(await api.anonymous.get("/health/ready")) == up


async def test_a_broker_that_is_not_ready_says_why(api: Api):
    api.host.reasons = [Reason("DMQ6004", "the broker is stopping")]
    api.broker.set_storage_full(True)
    response = await api.anonymous.get("/health/ready")
    assert response.status_code == 503
    found = response.json()
    assert found["status"] == "DOWN"
    assert [reason["code"] for reason in found["reasons"]] == ["DMQ6004", "DMQ6101"]
    assert "the broker is stopping" in found["detail"]
    assert "no room for durable messages" in found["detail"]
    assert (await api.anonymous.get("/health/live")).status_code == 200


async def scrape(api: Api, user: str = "admin") -> dict[tuple[str, str], float]:
    """Value by name and first label."""
    response = await api.get("/metrics", user=user)
    assert response.status_code == 200
    assert response.headers["content-type"].startswith("text/plain")
    return {
        (sample.name, sample.labels.get("queue", "") or ""): sample.value
        for family in text_string_to_metric_families(response.text)
        for sample in family.samples
    }


async def test_metrics_count_what_happened_in_each_queue(api: Api):
    await api.patch("/api/v1/queues/q", {"ring_size": 2})
    api.send("q", "a b c")
    await api.open("g")
    await api.lease(0, 1, max_rows=1)
    await api.lease(1, 1, max_rows=1)
    await api.settle()
    api.host.clock.now_ms += 3000
    found = await scrape(api)
    assert found["delosmq_queue_messages_added_total", "q"] == 3
    assert found["delosmq_queue_messages_replaced_total", "q"] == 1
    assert found["delosmq_queue_messages_acknowledged_total", "q"] == 1
    assert found["delosmq_queue_messages_killed_total", "q"] == 0
    assert found["delosmq_queue_messages", "q"] == 1
    assert found["delosmq_queue_messages_delivering", "q"] == 1
    assert found["delosmq_queue_consumers", "q"] == 1
    assert found["delosmq_memory_used_bytes", ""] == api.broker.used_bytes > 0
    assert found["delosmq_journal_synced_position", ""] == found["delosmq_journal_position", ""] > 0
    assert found["delosmq_lease_group_leased_messages", "q"] == 1
    assert found["delosmq_lease_group_oldest_age_seconds", "q"] == 3
    assert found["delosmq_lease_group_contact_age_seconds", "q"] == 3
    assert found["delosmq_storage_low", ""] == 0


async def test_metrics_show_only_what_the_user_may_view(api: Api):
    assert ("delosmq_queue_messages", "secret.q") in await scrape(api)
    assert ("delosmq_queue_messages", "secret.q") not in await scrape(api, "viewer")


async def test_two_brokers_in_one_process_do_not_mix(api: Api):
    other = Api()
    other.send("q", "a b")
    api.send("q", "a")
    await api.settle()
    assert (await scrape(api))["delosmq_queue_messages", "q"] == 1
    assert (await scrape(other))["delosmq_queue_messages", "q"] == 2
    await other.close()


async def test_metrics_speak_openmetrics_when_asked(api: Api):
    accept = {"Accept": "application/openmetrics-text; version=1.0.0"}
    response = await api.clients["admin"].get("/metrics", headers=accept)
    assert response.headers["content-type"].startswith("application/openmetrics-text")
    assert response.text.endswith("# EOF\n")
