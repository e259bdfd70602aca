"""broker.xml: ``<ha-policy>`` says whether another broker shares the store, and which of the two this one is."""

# HA-1, BROKER-3

import pytest

from delosmq.model.errors import ConfigurationError
from delosmq.model.settings import BackupPolicy, PrimaryPolicy
from tests.config.conftest import Load

SHARED = "<journal-directory>/srv/shared</journal-directory>\n"
POLICY = SHARED + "<ha-policy>{}</ha-policy>"
STORE = SHARED + "<ha-policy><shared-store>{}</shared-store></ha-policy>"


@pytest.mark.parametrize(
    ("written", "policy"),
    [
        (POLICY.format("<primary-only/>"), None),
        (POLICY.format("<live-only/>"), None),
        (STORE.format("<primary/>"), PrimaryPolicy(failover_on_shutdown=False, wait_for_activation=True)),
        (STORE.format("<master/>"), PrimaryPolicy()),
        (
            STORE.format(
                "<primary><failover-on-shutdown>true</failover-on-shutdown>"
                "<wait-for-activation>false</wait-for-activation></primary>"
            ),
            PrimaryPolicy(failover_on_shutdown=True, wait_for_activation=False),
        ),
        (
            STORE.format("<backup/>"),
            BackupPolicy(failover_on_shutdown=False, allow_failback=True, restart_backup=True),
        ),
        (STORE.format("<slave/>"), BackupPolicy()),
        (
            STORE.format(
                "<backup><failover-on-shutdown>true</failover-on-shutdown><allow-failback>false</allow-failback>"
                "<restart-backup>false</restart-backup></backup>"
            ),
            BackupPolicy(failover_on_shutdown=True, allow_failback=False, restart_backup=False),
        ),
    ],
)
def test_a_policy_has_the_defaults_of_artemis(
    load: Load, written: str, policy: PrimaryPolicy | BackupPolicy | None
) -> None:
    assert load(written).settings.ha_policy == policy


def test_a_broker_without_a_policy_shares_its_store_with_none(load: Load) -> None:
    assert load("<name>alone</name>").settings.ha_policy is None


@pytest.mark.parametrize(
    ("written", "code", "sentence"),
    [
        (POLICY.format(""), "DMQ4007", ":4: .*<ha-policy> is empty; write <primary-only/> or <shared-store> in it"),
        (STORE.format(""), "DMQ4007", ":4: .*<shared-store> is empty; write <primary/> or <backup/> in it"),
        (
            POLICY.format("<primary-only/>\n<shared-store><primary/></shared-store>"),
            "DMQ4008",
            ":5: .*<shared-store> beside <primary-only> in line 4; keep one",
        ),
        (STORE.format("<primary/>\n<backup/>"), "DMQ4008", ":5: .*<backup> beside <primary> in line 4"),
        (
            POLICY.format("<replication><primary/></replication>"),
            "DMQ4006",
            ":4: .*no journal is copied to another broker; let both use one store, with .*: a <database-store>",
        ),
        (STORE.format("<colocated/>"), "DMQ4006", ":4: .*start the backup as an instance of its own"),
        (STORE.format("<backup>\n<scale-down/></backup>"), "DMQ4006", ":5: .*would not move to another one"),
        (POLICY.format("<primary-only>\n<scale-down/></primary-only>"), "DMQ4006", ":5: .*would not move"),
        (STORE.format("<primary>\n<allow-failback>true</allow-failback></primary>"), "DMQ4004", ":5: .*allow-failback"),
        (
            STORE.format("<backup><allow-failback>perhaps</allow-failback></backup>"),
            "DMQ4005",
            ":4: .*<allow-failback> is 'perhaps' but must be true or false",
        ),
        (
            "<ha-policy><shared-store><primary/></shared-store></ha-policy>",
            "DMQ4007",
            ":3: .*<shared-store> lacks <journal-directory>",
        ),
        (
            STORE.format("<primary/>") + "<persistence-enabled>false</persistence-enabled>",
            "DMQ4012",
            ":4: .*a store in memory is shared with no broker",
        ),
        (POLICY.format("<shared-stores/>"), "DMQ4004", ":4: .*did you mean 'shared-store'"),
    ],
)
def test_what_makes_no_pair_is_refused_with_its_line(load: Load, written: str, code: str, sentence: str) -> None:
    with pytest.raises(ConfigurationError, match=f"(?s){sentence}") as refused:
        load(written)
    assert code in str(refused.value)
