"""broker.xml: connection routers, and the acceptors that name them."""

# ROUTE-2, ROUTE-6, ROUTE-7

import pytest

from delosmq.config.broker_xml import LoadedConfiguration
from delosmq.model.declared.router import (
    ConnectionRouterSettings,
    ConnectorSettings,
    KeyType,
    RouterCacheSettings,
    RouterPolicySettings,
    TargetPoolSettings,
)
from delosmq.model.errors import ConfigurationError
from tests.config.conftest import Load

MODULO = '<policy name="CONSISTENT_HASH_MODULO"><property key="MODULO" value="{}"/></policy>'
ACCEPTOR = '<acceptors>\n<acceptor name="a">tcp://127.0.0.1:0?protocols=STOMP;router={}</acceptor></acceptors>'


def routers(*each: str) -> str:
    return f"<connection-routers>\n{''.join(each)}</connection-routers>"


def one(inner: str = "", name: str = "r") -> str:
    return f'<connection-router name="{name}">\n{inner}</connection-router>'


LOGIN = "<username>admin</username><password>{}</password>"
FIRST = '<policy name="FIRST_ELEMENT"/>'


def pooled(
    inner: str = "",
    *,
    refs: str = "a",
    host: str = "10.0.0.1",
    login: str = LOGIN.format("secret"),
    policy: str = FIRST,
) -> str:
    """A router with a static pool of the connectors ``refs``; its pool begins in line 7, what is in it in line 8."""
    named = "".join(f"<connector-ref>{ref}</connector-ref>" for ref in refs)
    return (
        f'<connectors><connector name="a">tcp://{host}:61616</connector>\n'
        '<connector name="b">tcp://10.0.0.2:61617?sslEnabled=true;verifyHost=false</connector></connectors>'
        f'<connection-routers>\n<connection-router name="r">{policy}\n\n<pool>\n{login}{inner}'
        f"<static-connectors>{named}</static-connectors></pool></connection-router></connection-routers>"
    )


def found_by(group: str, inner: str = "", login: str = LOGIN.format("secret")) -> str:
    """A router whose targets the discovery group ``find`` finds; all of it in line 4."""
    return (
        f'<connection-routers>\n<connection-router name="r">{FIRST}<pool>{login}{inner}'
        f'<discovery-group-ref discovery-group-name="{group}"/></pool></connection-router></connection-routers>'
        '<discovery-groups><discovery-group name="find"><group-address>231.7.7.7</group-address>'
        "<group-port>9876</group-port></discovery-group></discovery-groups>"
    )


def read(load: Load, inner: str) -> ConnectionRouterSettings:
    (found,) = load(routers(one(inner))).settings.connection_routers
    return found


def test_a_router_of_which_nothing_is_said(load: Load) -> None:
    assert read(load, "") == ConnectionRouterSettings("r", KeyType.SOURCE_IP)


def test_a_local_partition_of_the_manual(load: Load) -> None:
    inner = (
        "<key-type>CLIENT_ID</key-type><key-filter>^.{3}</key-filter><local-target-filter>^FOO.*</local-target-filter>"
    )
    assert read(load, inner) == ConnectionRouterSettings("r", KeyType.CLIENT_ID, "^.{3}", "^FOO.*")


def test_a_shard(load: Load) -> None:
    inner = f"<local-target-filter>NULL|0</local-target-filter><key-type>user_name</key-type>{MODULO.format(2)}"
    found = read(load, inner)
    assert (found.key_type, found.policy) == (
        KeyType.USER_NAME,
        RouterPolicySettings("CONSISTENT_HASH_MODULO", (("MODULO", "2"),)),
    )


@pytest.mark.parametrize(
    ("inner", "cache"),
    [
        ("<cache/>", RouterCacheSettings(False, 0)),
        ("<cache><timeout>60000</timeout><persisted>false</persisted></cache>", RouterCacheSettings(False, 60_000)),
        ("<cache><persisted>true</persisted></cache>", RouterCacheSettings(True, 0)),
    ],
)
def test_a_cache(load: Load, inner: str, cache: RouterCacheSettings) -> None:
    assert read(load, inner).cache == cache


@pytest.mark.parametrize("name", ["key-filter", "local-target-filter"])
def test_a_blank_filter_is_none(load: Load, name: str) -> None:
    assert read(load, f"<{name}> </{name}>") == ConnectionRouterSettings("r")


def test_an_acceptor_names_its_router_wherever_that_stands(load: Load) -> None:
    for core in (routers(one()) + ACCEPTOR.format("r"), ACCEPTOR.format("r") + routers(one())):
        (acceptor,) = load(core).settings.acceptors
        assert acceptor.router == "r"


@pytest.mark.parametrize(
    ("core", "line", "code", "said"),
    [
        (routers("<connection-router/>"), 4, "DMQ4007", "lacks 'name'"),
        (routers(one(), "\n", one()), 6, "DMQ4008", "connection-router 'r' is already in line 4"),
        (routers(one("<key-type>HOST</key-type>")), 5, "DMQ4005", "CLIENT_ID, SNI_HOST, SOURCE_IP, USER_NAME or"),
        (routers(one("<key-filter>(</key-filter>")), 5, "DMQ4005", "a regular expression of Java"),
        (routers(one("<key-filter>(?&lt;=a)b</key-filter>")), 5, "DMQ4005", "'(?<=a)b' but must be"),
        (routers(one("<key-filter>colou?r(</key-filter>")), 5, "DMQ4005", "'colou?r(' but must be"),
        (routers(one("<local-target-filter>(a++)</local-target-filter>")), 5, "DMQ4005", "possessive"),
        (routers(one('<policy name="ROUND_ROBBIN"/>')), 5, "DMQ4005", "did you mean 'ROUND_ROBIN'?"),
        (routers(one('<policy name="CONSISTENT_HASH_MODULO"/>')), 5, "DMQ4005", "lacks the property MODULO"),
        (routers(one(MODULO.format(0))), 5, "DMQ4005", "must be a whole number of at least 1"),
        (routers(one('<policy name="ROUND_ROBIN"><property key="x" value="1"/></policy>')), 5, "DMQ4005", "'x'"),
        (routers(one("<policy/>")), 5, "DMQ4007", "lacks 'name'"),
        (routers(one("<cache><timeout>-1</timeout></cache>")), 5, "DMQ4005", "at least 0"),
        (routers(one("<key-transformer/>")), 5, "DMQ4006", "use <policy>"),
        (
            routers(one("<pool><cluster-connection>c</cluster-connection></pool>")),
            5,
            "DMQ4006",
            "<cluster-connection> is not in",
        ),
        (routers(one("<pool><discovery-group-ref/></pool>")), 5, "DMQ4007", "lacks 'discovery-group-name'"),
        (found_by("fnd"), 4, "DMQ4005", "there is no discovery group 'fnd'; did you mean 'find'?"),
        (found_by("find", "<static-connectors/>"), 4, "DMQ4012", "several kinds of targets; keep one"),
        (found_by("find", login=""), 4, "DMQ4007", "no password in plain text"),
        (routers(one("<pool/>")), 5, "DMQ4007", "names no targets"),
        (pooled(inner="<check-period>0</check-period>"), 8, "DMQ4005", "at least 1"),
        (pooled(inner="<quorum-timeout>-1</quorum-timeout>"), 8, "DMQ4005", "at least 0"),
        (pooled(login=""), 7, "DMQ4007", "no password in plain text"),
        (pooled(login=LOGIN.format("ENC(1)")), 7, "DMQ4007", "no password in plain text"),
        (pooled(refs="x"), 8, "DMQ4007", "no connector of <static-connectors>"),
        (pooled(host="0.0.0.0"), 8, "DMQ4005", "to which nothing can connect"),
        (ACCEPTOR.format("r"), 4, "DMQ4004", "names the connection-router 'r', which isn't there"),
        (ACCEPTOR.format("europa") + routers(one(name="europe")), 4, "DMQ4004", "did you mean 'europe'?"),
    ],
)
def test_a_mistake_is_named_with_its_line(load: Load, core: str, line: int, code: str, said: str) -> None:
    with pytest.raises(ConfigurationError) as caught:
        load(core)
    assert caught.value.code == code
    assert f"broker.xml:{line}: " in caught.value.message
    assert said in caught.value.message


def pool_of(load: Load, core: str) -> TargetPoolSettings:
    (router,) = load(core).settings.connection_routers
    assert router.pool is not None
    return router.pool


def test_a_pool_may_name_a_discovery_group_instead(load: Load) -> None:
    found = pool_of(load, found_by("find"))
    assert (found.discovery_group, found.connectors) == ("find", ())


def test_a_static_pool_has_its_connectors_in_their_order(load: Load) -> None:
    found = pool_of(load, pooled(refs="ba"))
    assert found.connectors == (
        ConnectorSettings("b", "10.0.0.2", 61617, tls=True, verify_host=False),
        ConnectorSettings("a", "10.0.0.1", 61616),
    )
    assert (found.username, found.password) == ("admin", "secret")
    assert (found.check_period_ms, found.quorum_size, found.quorum_timeout_ms) == (5_000, 1, 3_000)
    assert not found.local_target_enabled
    assert "secret" not in repr(found)


def test_a_pool_without_a_login_has_that_of_the_cluster(load: Load) -> None:
    cluster = "<cluster-user>c</cluster-user><cluster-password>shared</cluster-password>"
    found = pool_of(load, cluster + pooled(login=""))
    assert (found.username, found.password) == ("c", "shared")


def test_a_connector_that_is_not_there_is_left_out_and_pointed_out(load: Load) -> None:
    loaded = load(pooled(refs="ax"))
    (router,) = loaded.settings.connection_routers
    assert router.pool is not None
    assert [one.name for one in router.pool.connectors] == ["a"]
    (notice,) = notices(loaded, "DMQ4163")
    assert "broker.xml:8: there is no connector 'x'" in notice


@pytest.mark.parametrize(
    ("core", "code", "said"),
    [
        (pooled("<quorum-size>2</quorum-size>"), "DMQ4162", "is above its 1 target"),
        (pooled(policy=""), "DMQ4161", "no <policy> that chooses from it"),
        (pooled(policy=MODULO.format(2)), "DMQ4161", "chooses no target"),
    ],
)
def test_what_makes_no_sense_together_is_pointed_out(load: Load, core: str, code: str, said: str) -> None:
    (notice,) = notices(load(core), code)
    assert said in notice


@pytest.mark.parametrize(
    ("wait_ms", "options", "warned"),
    [(9_999, "", False), (10_000, "", True), (10_000, ";handshake-timeout=11", False), (0, "", False)],
)
def test_a_wait_beyond_the_time_for_a_login_is_pointed_out(
    load: Load, wait_ms: int, options: str, warned: bool
) -> None:
    core = pooled(f"<quorum-timeout>{wait_ms}</quorum-timeout>") + ACCEPTOR.format(f"r{options}")
    assert any("quorum-timeout" in one for one in notices(load(core), "DMQ4165")) is warned


def test_a_connector_that_is_no_target_stops_no_start(load: Load) -> None:
    loaded = load('<connectors><connector name="v">vm://0</connector></connectors>')
    (notice,) = notices(loaded, "DMQ4163")
    assert "connector 'v' can be no target" in notice


def notices(loaded: LoadedConfiguration, code: str) -> list[str]:
    return [notice for notice in loaded.notices if notice.startswith(code)]


def test_of_two_policies_the_last_counts_and_the_start_says_so(load: Load) -> None:
    loaded = load(routers(one('<policy name="FIRST_ELEMENT"/>\n' + MODULO.format(3))))
    (router,) = loaded.settings.connection_routers
    assert router.policy == RouterPolicySettings("CONSISTENT_HASH_MODULO", (("MODULO", "3"),))
    (notice,) = notices(loaded, "DMQ4160")
    assert "broker.xml:6: " in notice


def test_a_policy_without_a_pool_is_pointed_out(load: Load) -> None:
    (notice,) = notices(load(routers(one('<policy name="ROUND_ROBIN"/>'))), "DMQ4161")
    assert "broker.xml:5: " in notice


def test_a_modulo_needs_no_pool(load: Load) -> None:
    assert notices(load(routers(one(MODULO.format(2)))), "DMQ4161") == []


@pytest.mark.parametrize(
    ("mode", "password", "warned"),
    [
        (0o600, "secret", False),
        (0o640, "secret", True),
        (0o644, "secret", True),
        (0o644, "a&amp;b", True),
        (0o644, "${KEY:default}", True),
        (0o644, "${POOL}", False),
    ],
)
def test_a_password_that_others_can_read_is_warned_of(load: Load, mode: int, password: str, warned: bool) -> None:
    notices = load(pooled(login=LOGIN.format(password)), mode=mode, POOL="of the environment").notices
    told = [one for one in notices if one.startswith("DMQ4164")]
    assert len(told) == warned
    assert "secret" not in "".join(told)


@pytest.mark.parametrize(
    ("option", "meant"),
    [
        ("sslEnbled", "sslEnabled"),
        ("SSLEnabled", "sslEnabled"),
        ("trustStorPath", "trustStorePath"),
        ("verifyHosts", "verifyHost"),
    ],
)
def test_a_misspelt_option_of_a_connector_is_refused_with_the_nearest(load: Load, option: str, meant: str) -> None:
    with pytest.raises(
        ConfigurationError, match=f"DMQ4004.*unknown option '{option}' of connector 'c'; did you mean '{meant}'"
    ):
        load(f'<connectors><connector name="c">tcp://10.0.0.2:61617?{option}=true</connector></connectors>')


@pytest.mark.parametrize(
    "option",
    [
        "trustStorePassword",
        "trustStoreType",
        "keyStorePath",
        "proxyHost",
        "tcpNoDelay",
        "trustAll",
        "ha",
        "sslProvider",
    ],
)
def test_an_option_that_artemis_has_for_a_connector_is_ignored(load: Load, option: str) -> None:
    loaded = load(f'<connectors><connector name="c">tcp://10.0.0.2:61617?{option}=true</connector></connectors>')
    assert any(option in notice for notice in loaded.notices)
