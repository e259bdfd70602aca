"""``<plugins>``."""

from collections.abc import Callable
from typing import Final

from delosmq.migration.activemq_xml.names import ALL, QUEUE, TOPIC, match_of, split_names
from delosmq.migration.activemq_xml.policies import restate
from delosmq.migration.activemq_xml.security import ConvertedAccounts
from delosmq.migration.activemq_xml.source import Section, note_bean
from delosmq.migration.activemq_xml.target import Settings, Target
from delosmq.model import values

_NEEDLESS: Final = {
    "destinationsPlugin": "addresses and queues are kept in the journal",
}
_IMPOSSIBLE: Final = {
    "runtimeConfigurationPlugin": "takes up changes of the file while the broker runs; here they count from the next "
    "start, but for queues, which change with `delosmq queue`",
    "traceBrokerPathPlugin": "writes the names of the brokers into a property of each message; messages pass one "
    "broker only",
    "udpTraceBrokerPlugin": "sends what each client does to a UDP port; `delosmq explain message` tells where a "
    "message is",
    "multicastTraceBrokerPlugin": "sends what each client does to a multicast address; `delosmq explain message` tells "
    "where a message is",
    "connectionDotFilePlugin": "draws the connections into a file; `delosmq explain queue` names its consumers",
    "destinationDotFilePlugin": "draws the destinations into a file; `delosmq queue stat` and `delosmq address stat` "
    "list them",
    "virtualSelectorCacheBrokerPlugin": "keeps the selectors of virtual topics with selectorAware, which is refused; "
    "write a <filter> into the <queue>",
    "statisticsBrokerPlugin": "answers messages with statistics; ask the HTTP API, or /metrics",
    "jaasAuthenticationPlugin": "takes users from Java login modules; write those of users.properties and "
    "groups.properties into artemis-users.properties (`delosmq mask` makes a line) and artemis-roles.properties",
    "jaasCertificateAuthenticationPlugin": "takes the user from the certificate; users log in by name and "
    "password here",
    "jaasDualAuthenticationPlugin": "takes users from certificates or Java login modules; users log in by "
    "name and password",
    "destinationPathSeparatorPlugin": "lets clients write names with another separator; let them write dots",
    "forcePersistencyModeBrokerPlugin": "makes all messages persistent or none; let clients send them so",
    "forcePersistencyModeBroker": "makes all messages persistent or none; let clients send them so",
    "shiroPlugin": "asks Apache Shiro; write users and roles into the files of the instance",
}
# Each with its default, and what it has logged. Source: LoggingBrokerPlugin of ActiveMQ Classic.
_LOGGED: Final = (
    ("logConnectionEvents", True, "connections"),
    ("logSessionEvents", True, "sessions"),
    ("logConsumerEvents", False, "consumers and acknowledgements"),
    ("logProducerEvents", False, "producers and each message that is sent"),
    ("logTransactionEvents", False, "transactions"),
    ("logInternalEvents", False, "what the broker does to queues and messages"),
)
# Without a bound Classic's delay grows for ever; here a maximum is always there.
_A_YEAR_MS: Final = 365 * 86_400_000


def read_plugins(section: Section, target: Target, accounts: ConvertedAccounts) -> None:
    readers: dict[str, Callable[[Section], None]] = {
        "simpleAuthenticationPlugin": accounts.read_simple_authentication,
        "authorizationPlugin": accounts.read_authorization,
        "loggingBrokerPlugin": _read_logging,
        "timeStampingBrokerPlugin": lambda plugin: _read_time_stamping(plugin, target),
        "redeliveryPlugin": lambda plugin: _read_redelivery(plugin, target),
        "discardingDLQBrokerPlugin": lambda plugin: _read_discarding(plugin, target),
    }
    for plugin in section.children():
        name = plugin.element.name
        if name in readers:
            readers[name](plugin)
        elif name in _NEEDLESS:
            plugin.needless(f"<{name}> is not needed: {_NEEDLESS[name]}")
        elif name in _IMPOSSIBLE:
            plugin.impossible(f"<{name}> is left out: it {_IMPOSSIBLE[name]}")
            if name.startswith("jaas"):
                accounts.has_authentication = True
        elif name in ("bean", "ref"):
            note_bean(plugin.element, section.remarks)
        else:
            plugin.unknown(f"<{name}> is left out: it is no plugin of Classic")
    section.close()


def discards_all(broker: Section) -> bool:
    """Whether a discardingDLQBrokerPlugin of the broker drops all dead letters; takes nothing."""
    for plugins in broker.element.children:
        for plugin in plugins.children if plugins.name == "plugins" else ():
            if plugin.name == "discardingDLQBrokerPlugin":
                written = plugin.attributes
                return written.get("dropAll", "").strip().lower() != "false" and not written.get("dropOnly", "").strip()
    return False


def _amount(section: Section, name: str, default: int) -> int:
    """An attribute that is a whole number; a wrong one is listed."""
    text = section.attribute(name)
    if not text:
        return default
    try:
        return values.parse_integer(text)
    except ValueError as rule:
        section.wrong(f"{name!r} of <{section.element.name}>", text, str(rule))
        return default


def _read_logging(plugin: Section) -> None:
    everything = plugin.flag("logAll", False)
    logged = [what for name, default, what in _LOGGED if plugin.flag(name, default) or everything]
    plugin.flag("perDestinationLogger", False)
    plugin.close([name for name, _, _ in _LOGGED] + ["logAll", "perDestinationLogger"])
    if not logged:
        plugin.needless("<loggingBrokerPlugin> is not needed: all that it could log is switched off")
        return
    plugin.impossible(
        f"<loggingBrokerPlugin> is left out: it logs {', '.join(logged)}; here the log names what is refused and what "
        "goes wrong. To see each message, copy messages with a <divert> to a queue and read that, or let an OpenWire "
        "client listen to advisories (advisory-for-delivery, advisory-for-consumed)"
    )


def _read_time_stamping(plugin: Section, target: Target) -> None:
    given = _amount(plugin, "zeroExpirationOverride", 0)
    ceiling = _amount(plugin, "ttlCeiling", 0)
    only = " ('futureOnly' would bound it)" if plugin.flag("futureOnly", False) else ""
    plugin.impossible(
        f"what <timeStampingBrokerPlugin> does to each message is left out{only}: it puts the time of the broker into "
        "it and moves its expiry along; keep the clocks of clients in step"
    )
    if plugin.flag("processNetworkMessages", False):
        plugin.needless("'processNetworkMessages' of <timeStampingBrokerPlugin> is not needed: there are no networks")
    plugin.close(["zeroExpirationOverride", "ttlCeiling", "futureOnly", "processNetworkMessages"])
    settings = target.overlays.setdefault(ALL, {})
    if given > 0 and ceiling <= 0:
        settings["expiry-delay"] = str(given)
    elif given > 0 and given >= ceiling:
        settings["max-expiry-delay"] = str(ceiling)
    elif given > 0:
        settings["expiry-delay"] = str(given)
        plugin.impossible(
            f"'ttlCeiling' {ceiling} is left out: beside the life of {given} ms for messages without one "
            "(expiry-delay), max-expiry-delay has no effect; let clients send a shorter one"
        )
    elif ceiling > 0:
        plugin.impossible(
            f"'ttlCeiling' {ceiling} is left out: max-expiry-delay would end the life of messages without an expiry "
            f"too; write <max-expiry-delay>{ceiling}</max-expiry-delay> if that is wanted"
        )
    if not settings:
        del target.overlays[ALL]


def _read_discarding(plugin: Section, target: Target) -> None:
    drop_all = plugin.flag("dropAll", True)
    for name in ("dropTemporaryTopics", "dropTemporaryQueues"):
        if not plugin.flag(name, True):
            sentence = f"{name!r} is left out: temporary destinations have the settings of match '#', as all others"
            plugin.impossible(sentence)
    if plugin.attribute("reportInterval"):
        plugin.needless("'reportInterval' of <discardingDLQBrokerPlugin> is not needed: what is dropped is counted")
    if plugin.attribute("dropOnly"):
        sentence = (
            "'dropOnly' is left out: write a match with empty <dead-letter-address/> and <expiry-address/> for them"
        )
        plugin.impossible(sentence)
        drop_all = False
    plugin.close(["dropAll", "dropOnly", "dropTemporaryTopics", "dropTemporaryQueues", "reportInterval"])
    target.discards_dead_letters = drop_all


def _read_redelivery(plugin: Section, target: Target) -> None:
    plugin.attribute("fallbackToDeadLetter")
    if not plugin.flag("sendToDlqIfMaxRetriesExceeded", True):
        sentence = "'sendToDlqIfMaxRetriesExceeded' is left out: what fails too often goes to the dead-letter-address"
        plugin.impossible(sentence)
    wrapper = plugin.inner("redeliveryPolicyMap")
    policy_map = None if wrapper is None else wrapper.inner("redeliveryPolicyMap")
    if policy_map is None:
        return
    found: Settings = {}
    for default in policy_map.children("defaultEntry"):
        for policy in default.children("redeliveryPolicy"):
            found[ALL] = _redelivery(policy)
            policy.close()
        default.close(["redeliveryPolicy"])
    for entries in policy_map.children("redeliveryPolicyEntries"):
        for policy in entries.children("redeliveryPolicy"):
            names = [name for kind in (QUEUE, TOPIC) for name in split_names(policy.attribute(kind))]
            settings = _redelivery(policy)
            policy.close([QUEUE, TOPIC])
            for name in names:
                try:
                    found[match_of(name)] = settings
                except ValueError as rule:
                    policy.wrong("the destination of <redeliveryPolicy>", name, str(rule))
        entries.close(["redeliveryPolicy"])
    policy_map.close(["defaultEntry", "redeliveryPolicyEntries"])
    for match, settings in restate(found).items():
        target.overlays.setdefault(match, {}).update(settings)


def _redelivery(policy: Section) -> dict[str, str]:
    most = _amount(policy, "maximumRedeliveries", 6)
    first = max(0, _amount(policy, "initialRedeliveryDelay", 1000))
    delay = max(0, _amount(policy, "redeliveryDelay", 1000))
    longest = _amount(policy, "maximumRedeliveryDelay", -1)
    grows = policy.flag("useExponentialBackOff", False)
    by, chance = policy.attribute("backOffMultiplier", "5.0"), policy.attribute("collisionAvoidancePercent", "15")
    avoids = policy.flag("useCollisionAvoidance", False)
    policy.attribute("preDispatchCheck")
    settings = {"max-delivery-attempts": str(most + 1 if most >= 0 else -1), "redelivery-delay": str(first)}
    if first != delay and (not grows or first == 0):
        settings["redelivery-delay"] = str(delay)
        others = "the base of those that follow" if grows else "as all others do"
        policy.different(f"the first redelivery waits {delay} ms, {others}, not {first} ms")
    try:
        settings["redelivery-delay-multiplier"] = str(values.parse_multiplier(by)) if grows else "1.0"
        factor = values.parse_share(str(float(chance) / 100)) if avoids else 0.0
        settings["redelivery-collision-avoidance-factor"] = str(factor)
    except ValueError as rule:
        policy.wrong("'backOffMultiplier' or 'collisionAvoidancePercent'", f"{by}, {chance}", str(rule))
    settings["max-redelivery-delay"] = str(longest if grows and longest >= 0 else _A_YEAR_MS)
    return settings
