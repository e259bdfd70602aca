"""The page about coming from ActiveMQ says of each attribute of a policyEntry what the conversion does with it."""

import re
from pathlib import Path

from delosmq.config.broker_xml.catalog.address_settings import ADDRESS_SETTING
from delosmq.migration.activemq_xml.catalog.policies import BASELINE, POLICY
from delosmq.migration.activemq_xml.catalog.rows import is_in_effect
from delosmq.migration.activemq_xml.conversion_report import RemarkKind

PAGE = (Path(__file__).resolve().parents[2] / "docs" / "coming-from-activemq.md").read_text("utf-8")
CONVERTED = {row.name: row.to for row in POLICY.values() if is_in_effect(row.to, ADDRESS_SETTING)}


def test_what_is_converted_is_in_the_table() -> None:
    table = PAGE.partition("| attribute | address-setting |")[2].partition("\n\n")[0]
    assert dict(re.findall(r"^\| `(\w+)` \| `([\w-]+)` \|$", table, re.MULTILINE)) == CONVERTED


def test_what_is_not_yet_is_listed() -> None:
    listed = PAGE.partition("Left out until there is a setting for it:")[2].partition("\n\n")[0]
    later = [row.name for row in POLICY.values() if row.to and row.name not in CONVERTED]
    assert sorted(re.findall(r"`(\w+)`", listed)) == sorted(later)


def test_what_is_written_for_all_addresses_is_shown() -> None:
    shown = dict(
        re.findall(r"<([\w-]+)>([\w.]+)</\1>", PAGE.partition("### For all addresses")[2].partition("```\n")[0])
    )
    usual = {"auto-create-queues", "auto-create-addresses"}
    assert shown == {
        name: value for name, value in BASELINE.items() if is_in_effect(name, ADDRESS_SETTING) and name not in usual
    }


def test_each_code_is_explained() -> None:
    assert all(f"| {kind.value} |" in PAGE for kind in RemarkKind)
