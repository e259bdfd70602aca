"""Users, groups and authorization of an activemq.xml, and a broker that runs with them."""

import queue
from pathlib import Path

import pytest
import stomp

import delosmq
from delosmq.config.instance import load_instance
from delosmq.migration.activemq_xml import RemarkKind, convert_activemq_xml, write_instance
from delosmq.migration.activemq_xml.names import covers
from delosmq.model.errors import PermissionDeniedError
from delosmq.security.access import PERMISSIONS, AccessControl, Login
from delosmq.security.passwords import verify_password
from tests.migration.activemq_xml import Converted, broker, convert_text, policies
from tests.patience import PATIENCE_S

USERS = """<simpleAuthenticationPlugin><users>
<authenticationUser username="root" password="r00t" groups="admins,users"/>
<authenticationUser username="ann" password="${ann}" groups="users"/>
<authenticationUser username="guest" password="g" groups="guests"/>
</users></simpleAuthenticationPlugin>"""


def authorization(entries: str, more: str = "") -> str:
    return (
        "<authorizationPlugin><map><authorizationMap><authorizationEntries>\n"
        f"{entries}</authorizationEntries>{more}</authorizationMap></map></authorizationPlugin>"
    )


def convert(tmp_path: Path, inner: str) -> Converted:
    return convert_text(broker(f"<plugins>{inner}</plugins>"), tmp_path, ann="secret")


def allowed(made: Converted, user: str, address: str) -> set[str]:
    roles = frozenset(role for role, users in made.conversion.roles.items() if user in users)
    access = AccessControl({}, {user: roles}, made.settings.security_settings, cache_key=b"k")
    return {name for name in PERMISSIONS if access.check(roles, address, name)}


READ, WRITE = {"consume", "browse"}, {"send"}
QUEUES = {"createDurableQueue", "deleteDurableQueue", "createNonDurableQueue", "deleteNonDurableQueue"}
ADMIN = QUEUES | {"createAddress", "deleteAddress"}


def test_users_keep_their_passwords_hashed(tmp_path: Path) -> None:
    source = tmp_path / "activemq.xml"
    source.write_text(broker(f"<plugins>{USERS}</plugins>"), encoding="utf-8")
    write_instance(convert_activemq_xml(source, properties={"ann": "secret"}), tmp_path / "new")
    made = load_instance(tmp_path / "new", properties={})
    assert made.users.keys() == {"admin", "root", "ann", "guest"}
    assert verify_password(made.users["ann"], "secret")
    assert made.roles["root"] == {"admins", "users", "everybody"}
    text = made.paths.users.read_text("ascii") + made.paths.broker_xml.read_text("utf-8")
    assert "secret" not in text
    assert "r00t" not in text


def test_without_authorization_every_user_may_use_everything_and_manage_nothing(tmp_path: Path) -> None:
    made = convert(tmp_path, USERS)
    assert allowed(made, "guest", "any") == READ | WRITE | ADMIN
    assert allowed(made, "admin", "any") == set(PERMISSIONS)


def test_rights_of_queues_and_topics(tmp_path: Path) -> None:
    entries = (
        '<authorizationEntry queue="q" read="users" write="guests" admin="admins"/>'
        '<authorizationEntry topic="t" read="users" write="guests" admin="admins"/>'
    )
    made = convert(tmp_path, USERS + authorization(entries))
    assert allowed(made, "ann", "q") == READ
    assert allowed(made, "guest", "q") == WRITE
    assert allowed(made, "root", "q") == READ | ADMIN
    # A subscription is a queue.
    assert allowed(made, "ann", "t") == READ | QUEUES
    assert allowed(made, "ann", "other") == set()
    assert allowed(made, "admin", "q") == allowed(made, "admin", "other") == set(PERMISSIONS)


def test_who_may_read_a_topic_names_durable_subscriptions_as_they_like(tmp_path: Path) -> None:
    made = convert(tmp_path, USERS + authorization('<authorizationEntry topic="t.>" read="users"/>'))
    access = AccessControl({}, {}, made.settings.security_settings, cache_key=b"k")
    login = Login("ann", frozenset({"users"}))
    access.require_queue(login, "t.a", "laptop.prices", "createDurableQueue")
    for address, name in (("q", "laptop.prices"), ("laptop.prices", "laptop.prices")):
        with pytest.raises(PermissionDeniedError):
            access.require_queue(login, address, name, "createDurableQueue")
    access.require_queue(Login("root", frozenset({"amq"})), "t.a", "laptop.prices", "edit")


MAKING_TEMPORARY = {"createAddress", "createNonDurableQueue"}
TEMPORARY = "temporary.ID:vm-1-2:1:1"


def test_without_an_entry_for_them_everybody_may_make_temporary_destinations(tmp_path: Path) -> None:
    made = convert(tmp_path, USERS + authorization('<authorizationEntry queue=">" read="admins" admin="admins"/>'))
    assert made.settings.temporary_queue_namespace == "temporary"
    assert allowed(made, "guest", TEMPORARY) == allowed(made, "ann", TEMPORARY) == MAKING_TEMPORARY
    assert allowed(made, "guest", "orders") == set()
    assert any(
        "all users may make temporary destinations" in sentence for _, sentence in made.said(RemarkKind.DIFFERENT)
    )


def test_stomp_clients_may_use_temporary_destinations_too(tmp_path: Path) -> None:
    connector = "<transportConnectors><transportConnector name='s' uri='stomp://h:1'/></transportConnectors>"
    text = authorization('<authorizationEntry queue=">" read="admins" write="admins" admin="admins"/>')
    made = convert_text(broker(f"{connector}<plugins>{USERS}{text}</plugins>"), tmp_path, ann="x")
    for address in ("temp-queue.c1.a", "temp-topic.c1.a"):
        assert allowed(made, "guest", address) == READ | WRITE
        assert allowed(made, "guest", f"temporary.{address}") == MAKING_TEMPORARY


@pytest.mark.parametrize("wrapped", [False, True])
def test_an_entry_says_who_may_make_temporary_destinations(tmp_path: Path, *, wrapped: bool) -> None:
    rights = "read='users' admin='users'"
    inner = f"<tempDestinationAuthorizationEntry {rights}/>"
    if wrapped:
        inner = f"<tempDestinationAuthorizationEntry>{inner}</tempDestinationAuthorizationEntry>"
    made = convert(tmp_path, USERS + authorization('<authorizationEntry queue="temporary.>" write="guests"/>', inner))
    assert made.settings.temporary_queue_namespace == "temporary-"
    name = TEMPORARY.replace("temporary", "temporary-")
    assert allowed(made, "ann", name) == MAKING_TEMPORARY
    assert allowed(made, "guest", name) == set()
    assert made.left_out == []
    assert any("only their maker consumes" in sentence for _, sentence in made.said(RemarkKind.DIFFERENT))


def test_permissions_for_queues_of_dead_letters_are_listed(tmp_path: Path) -> None:
    strategy = "<deadLetterStrategy><individualDeadLetterStrategy queuePrefix='DLQ.'/></deadLetterStrategy>"
    entries = "".join(f'<authorizationEntry queue="{name}" read="users"/>' for name in (">", "DLQ.>", "a.>", "DLQ.b.>"))
    text = policies(f'<policyEntry queue=">">{strategy}</policyEntry>')
    made = convert_text(broker(f"{text}<plugins>{USERS}{authorization(entries)}</plugins>"), tmp_path, ann="x")
    (sentence,) = made.left_out
    assert "match 'DLQ.b.#' do not hold for dead letters" in sentence
    assert "<security-setting match='DLQ'>" in sentence


def test_rights_of_all_entries_that_match_add_up(tmp_path: Path) -> None:
    entries = "".join(
        f'<authorizationEntry {kind}="{name}" read="{roles}" write="{roles}" admin="{roles}"/>'
        for kind in ("queue", "topic")
        for name, roles in ((">", "admins"), ("USERS.>", "users"), ("USERS.news", "guests"))
    )
    made = convert(tmp_path, USERS + authorization(entries))
    names = ("a", "USERS.a", "USERS.news")
    reach = {user: [bool(allowed(made, user, name)) for name in names] for user in ("root", "ann", "guest")}
    assert reach == {"root": [True, True, True], "ann": [False, True, True], "guest": [False, False, True]}


def test_a_default_entry_is_added_to_all_and_a_star_is_everybody(tmp_path: Path) -> None:
    entry = '<authorizationEntry queue="a" read="*"/><authorizationEntry topic="a" read="*"/>'
    default = '<defaultEntry><authorizationEntry read="admins" write="admins" admin="admins"/></defaultEntry>'
    made = convert(tmp_path, USERS + authorization(entry, default))
    assert allowed(made, "guest", "a") == READ | QUEUES
    assert allowed(made, "root", "a") == READ | WRITE | ADMIN


@pytest.mark.parametrize(
    "inner, part",
    [
        ('<simpleAuthenticationPlugin anonymousAccessAllowed="true"/>', "a login is always required"),
        (
            "<simpleAuthenticationPlugin><users><authenticationUser username='a' password='${x}'/></users>"
            "</simpleAuthenticationPlugin>",
            "its password is not there",
        ),
        (
            "<simpleAuthenticationPlugin><users><authenticationUser username='a,b' password='x'/></users>"
            "</simpleAuthenticationPlugin>",
            "can't be used",
        ),
        (
            "<simpleAuthenticationPlugin><users><authenticationUser username='a' password='x'/>"
            "<authenticationUser username='a' password='y'/></users></simpleAuthenticationPlugin>",
            "twice",
        ),
        ("<simpleAuthenticationPlugin><userPasswords/></simpleAuthenticationPlugin>", "<userPasswords> is left out"),
        ("<authorizationPlugin><map><cachedLDAPAuthorizationMap/></map></authorizationPlugin>", "cachedLDAP"),
        (authorization("<authorizationEntry read='a'/>"), 'without queue="..."'),
        (authorization("<authorizationEntry queue='a.>.b' read='a'/>"), "at its end only"),
        (
            authorization("<authorizationEntry queue='a' read='r'/><authorizationEntry topic='a' read='s'/>"),
            "who may read the one may the other",
        ),
        (
            authorization("<authorizationEntry queue='a.*'/><authorizationEntry queue='*.b'/>"),
            "names of both '*.b' and 'a.*' have the permissions of the more specific match only",
        ),
    ],
)
def test_what_would_open_or_close_more_is_listed(tmp_path: Path, inner: str, part: str) -> None:
    made = convert_text(broker(f"<plugins>{inner}</plugins>"), tmp_path)
    assert any(part in sentence for sentence in made.left_out), made.left_out
    assert "'x'" not in " ".join(made.left_out)


def test_an_entry_for_queues_opens_topics_of_the_same_names_and_says_so(tmp_path: Path) -> None:
    made = convert(tmp_path, USERS + authorization('<authorizationEntry queue="a" read="users"/>'))
    assert made.left_out == []
    (line, sentence), *_ = [said for said in made.said(RemarkKind.DIFFERENT) if said[0] > 1]
    assert line == 7
    assert "who may read the one may the other; give topics" in sentence


def test_administrators_of_everything_may_look_at_and_change_it(tmp_path: Path) -> None:
    entries = (
        '<authorizationEntry queue=">" read="users" write="users" admin="admins"/>'
        '<authorizationEntry queue="own.>" read="users" write="users" admin="guests"/>'
    )
    made = convert(tmp_path, USERS + authorization(entries))
    assert {"view", "edit"} <= allowed(made, "root", "own.a") & allowed(made, "root", "any")
    assert not {"view", "edit"} & (allowed(made, "guest", "own.a") | allowed(made, "ann", "any"))


def test_authorization_of_many_names_is_not_compared_pair_by_pair(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked = 0

    def counting(wider: str, match: str) -> bool:
        nonlocal asked
        asked += 1
        return covers(wider, match)

    monkeypatch.setattr("delosmq.migration.activemq_xml.security.covers", counting)
    entries = "".join(f'<authorizationEntry queue="q{number}" read="users"/>' for number in range(100))
    made = convert(tmp_path, USERS + authorization(entries + '<authorizationEntry queue=">" write="guests"/>'))
    assert allowed(made, "guest", "q7") == WRITE
    assert allowed(made, "ann", "q7") == READ
    assert asked <= 6 * 100


def test_advisories_are_never_queues(tmp_path: Path) -> None:
    entry = '<authorizationEntry topic="ActiveMQ.Advisory.>" read="users" write="users" admin="users"/>'
    made = convert_text(broker(f"<plugins>{USERS}{authorization(entry)}</plugins>"), tmp_path, ann="a")
    assert made.left_out == []


def test_the_administrator_is_nobody_of_the_old_broker(tmp_path: Path) -> None:
    user = "<authenticationUser username='admin' password='a' groups='amq'/>"
    plugin = f"<simpleAuthenticationPlugin><users>{user}</users></simpleAuthenticationPlugin>"
    made = convert(tmp_path, plugin + authorization('<authorizationEntry queue="q" read="amq"/>'))
    assert made.conversion.administrator == "delosmq-admin"
    assert allowed(made, "admin", "q") == READ
    assert allowed(made, "delosmq-admin", "q") == set(PERMISSIONS)


def test_where_nobody_logged_in_it_is_said(tmp_path: Path) -> None:
    made = convert_text('<broker xmlns="http://activemq.apache.org/schema/core"/>', tmp_path)
    assert "let clients log in, at first as 'admin'" in made.said(RemarkKind.DIFFERENT)[0][1]


def test_a_broker_runs_with_what_was_converted(tmp_path: Path) -> None:
    body = """
    <destinations><queue physicalName="orders"/></destinations>
    <destinationInterceptors><virtualDestinationInterceptor><virtualDestinations>
      <compositeQueue name="all"><forwardTo><queue physicalName="orders"/></forwardTo></compositeQueue>
    </virtualDestinations></virtualDestinationInterceptor></destinationInterceptors>
    <transportConnectors><transportConnector name="s" uri="stomp://127.0.0.1:0"/></transportConnectors>
    """
    settings = convert_text(broker(body, "persistent='false'"), tmp_path).settings
    inbox = _Inbox()
    with delosmq.Broker(settings=settings, http=False) as running:
        client = stomp.Connection12([(running.host, running.stomp_port)])
        client.set_listener("inbox", inbox)
        client.connect(running.user, running.password, wait=True)
        client.subscribe("/queue/orders", id="1", ack="client-individual")
        client.send("/queue/all", "one", persistent="true")
        frame = inbox.frames.get(timeout=PATIENCE_S)
        assert (frame.body, frame.headers["destination"]) == ("one", "/queue/orders")
        for _ in range(7):
            client.nack(frame.headers["ack"])
            frame = inbox.frames.get(timeout=PATIENCE_S) if _ < 6 else frame
        client.subscribe("/queue/ActiveMQ.DLQ", id="2")
        dead = inbox.frames.get(timeout=PATIENCE_S)
        assert (dead.body, dead.headers["subscription"]) == ("one", "2")
        client.disconnect()


class _Inbox(stomp.ConnectionListener):  # type: ignore[misc]
    def __init__(self) -> None:
        self.frames: queue.Queue[stomp.utils.Frame] = queue.Queue()

    def on_message(self, frame: stomp.utils.Frame) -> None:
        self.frames.put(frame)
