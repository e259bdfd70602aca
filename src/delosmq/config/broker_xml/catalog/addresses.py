"""What stands below ``<addresses>``, ``<diverts>`` and ``<security-settings>``."""

from collections.abc import Iterator
from typing import Final

from delosmq.config.broker_xml.catalog.table import Item, Table, in_effect, in_effect_of, not_yet, refused, table
from delosmq.model.declared.queue import QUEUE_SETTINGS
from delosmq.model.settings import DivertSettings

ADDRESSES: Final[Table] = table([in_effect("address", "one address")])
ADDRESS: Final[Table] = table(
    [
        in_effect("@name", "its name"),
        in_effect("anycast", "it takes anycast; holds `<queue>`"),
        in_effect("multicast", "it takes multicast; holds `<queue>`"),
    ]
)
QUEUES: Final[Table] = table([in_effect("queue", "one queue")])


def _declared() -> Iterator[Item]:
    """What `QueueSettings` declares, in its order."""
    for field, setting in QUEUE_SETTINGS.items():
        if field == "last_value_key":
            about = "a newer message replaces the older one of its key"
            yield in_effect("@last-value", about, "default-last-value-queue")
        default = setting.defaults[0].replace("_", "-") if setting.in_file is None else str(setting.in_file).lower()
        yield in_effect(f"@{setting.written}", setting.about, default, setting.unit)


QUEUE: Final[Table] = table(
    [in_effect("@name", "its name, unique in the broker")],
    _declared(),
    [
        in_effect("@enabled", "false takes it out of routing", "true"),
        in_effect("filter", 'only messages that `string="..."` selects enter'),
        in_effect("durable", "the queue and its durable messages survive a restart", "true"),
        in_effect("user", "the user that owns it"),
    ],
)
"""Attributes and children of ``<queue>``."""

FILTER: Final[Table] = table([in_effect("@string", "the selector; empty lets all through")])

DIVERTS: Final[Table] = table([in_effect("divert", "sends what arrives at one address to others")])
DIVERT: Final[Table] = table(
    [
        in_effect("@name", "its name, unique among diverts"),
        in_effect("address", "where messages are diverted from"),
        in_effect("forwarding-address", "where they go; several with commas, each gets a copy"),
        *in_effect_of(DivertSettings),
        in_effect("filter", 'only messages that `string="..."` selects are diverted'),
        in_effect("transformer", "changes properties of the copies"),
        in_effect("transformer-class-name", "older form of `<transformer>`; see `class-name`"),
        not_yet("routing-name", "there are no clusters yet, where it would be of use"),
    ]
)
"""Attributes and children of ``<divert>``."""

TRANSFORMER: Final[Table] = table(
    [
        in_effect("drop", 'DelosMQ only: `<drop name="..."/>` takes a property away, before all else'),
        in_effect("rename", 'DelosMQ only: `<rename from="..." to="..."/>`, then'),
        in_effect("add", 'DelosMQ only: `<add name="..." value="..."/>` sets a property, at last'),
        in_effect("class-name", "Artemis's `AddHeadersTransformer` with its package; no other class can run here"),
        in_effect("property", '`<property key="..." value="..."/>`: a property that AddHeadersTransformer sets'),
    ]
)
"""Children of ``<transformer>``."""

ADD: Final[Table] = table([in_effect("@name", "the property"), in_effect("@value", "a string")])
DROP: Final[Table] = table([in_effect("@name", "the property")])
RENAME: Final[Table] = table([in_effect("@from", "its old name"), in_effect("@to", "its new name")])
PROPERTY: Final[Table] = table([in_effect("@key", "the property"), in_effect("@value", "a string")])

SECURITY_SETTINGS: Final[Table] = table(
    [
        in_effect("security-setting", "permissions on the addresses it matches"),
        refused("security-setting-plugin", "its permissions would be missing; write them as <security-setting>"),
        refused("role-mapping", "roles would keep their own names; write the mapped role into <permission>"),
    ]
)
SECURITY_SETTING: Final[Table] = table(
    [
        in_effect("@match", "the addresses it is for; the most specific match decides alone"),
        in_effect("permission", "one permission"),
    ]
)
PERMISSION: Final[Table] = table(
    [in_effect("@type", "which permission"), in_effect("@roles", "who holds it, separated by commas")]
)
