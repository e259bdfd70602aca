"""Instance directories: made, read, locked."""

import errno
import io
import os
import re
import stat
from pathlib import Path

import pytest

from delosmq.cli.create import create_command, mask_command
from delosmq.config.instance import create_instance, load_instance
from delosmq.model.errors import ConfigurationError
from delosmq.model.settings import WebBind
from delosmq.model.wildcard import AddressSettingsTable
from delosmq.security.access import PERMISSIONS, AccessControl
from delosmq.security.passwords import verify_password
from delosmq.storage.lock import DirectoryLock


def test_a_new_instance_loads_without_a_notice(tmp_path: Path) -> None:
    created = create_instance(tmp_path / "broker", password="secret")
    instance = load_instance(tmp_path / "broker", properties={})
    assert instance.notices == []
    assert instance.web == created.web == WebBind("127.0.0.1", 8161)
    assert verify_password(instance.users["admin"], "secret")
    assert instance.roles == {"admin": {"amq"}}
    assert instance.settings.journal.directory == str(tmp_path / "broker/data/journal")
    acceptor, openwire = instance.settings.acceptors
    assert (openwire.protocols, openwire.host, openwire.port) == (("OPENWIRE", "CORE"), "127.0.0.1", 61616)
    assert (acceptor.host, acceptor.port, acceptor.protocols) == ("127.0.0.1", 61613, ("STOMP",))
    assert (acceptor.anycast_prefixes, acceptor.multicast_prefixes) == (("/queue/",), ("/topic/",))
    assert {queue.name for queue in instance.settings.queues} == {"DLQ", "ExpiryQueue"}


def test_a_new_instance_keeps_what_is_made_and_what_is_dead_or_late(tmp_path: Path) -> None:
    create_instance(tmp_path / "broker")
    instance = load_instance(tmp_path / "broker", properties={})
    found = AddressSettingsTable(instance.settings.address_settings).resolve("any")
    # As `artemis create` writes it, but that what was made automatically goes with its last use.
    assert (found.dead_letter_address, found.expiry_address) == ("DLQ", "ExpiryQueue")
    assert (found.auto_create_queues, found.auto_create_addresses) == (True, True)
    assert (found.auto_delete_queues, found.auto_delete_addresses) == (True, True)
    assert (found.max_delivery_attempts, found.redelivery_delay) == (10, 0)


def test_its_administrator_may_do_everything(tmp_path: Path) -> None:
    create_instance(tmp_path / "broker")
    instance = load_instance(tmp_path / "broker", properties={})
    access = AccessControl(instance.users, instance.roles, instance.settings.security_settings, cache_key=b"k")
    assert all(access.check(instance.roles["admin"], "any.address", permission) for permission in PERMISSIONS)


def test_a_random_password_is_long_and_another_each_time(tmp_path: Path) -> None:
    one, other = create_instance(tmp_path / "1"), create_instance(tmp_path / "2")
    assert one.password_is_random
    assert len(one.password) == 24
    assert one.password != other.password


def test_the_password_is_kept_nowhere_and_the_files_are_the_owners_alone(tmp_path: Path) -> None:
    created = create_instance(tmp_path / "broker")
    files = [path for path in (tmp_path / "broker").rglob("*") if path.is_file()]
    assert len(files) == 4
    for path in files:
        assert stat.S_IMODE(path.stat().st_mode) == 0o600
        assert created.password not in path.read_text()


def test_a_user_whose_name_http_cannot_carry_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ConfigurationError, match=r"DMQ4034: the user 'a:b' can't be used: .* leave the colon out"):
        create_instance(tmp_path / "broker", user="a:b")
    assert not (tmp_path / "broker").exists()


def test_names_and_endpoints_arrive(tmp_path: Path) -> None:
    create_instance(
        tmp_path / "b",
        user="jörg =x",
        role='a"<&',
        name="n & m",
        host="::1",
        stomp_port=0,
        openwire_port=61617,
        web=WebBind("::1", 0),
    )
    instance = load_instance(tmp_path / "b", properties={})
    opened = [(one.protocols, one.host, one.port) for one in instance.settings.acceptors]
    assert opened == [(("STOMP",), "::1", 0), (("OPENWIRE", "CORE"), "::1", 61617)]
    assert instance.web == WebBind("::1", 0)
    assert instance.settings.name == "n & m"
    assert instance.roles == {"jörg =x": {'a"<&'}}
    assert instance.users.keys() == {"jörg =x"}


def test_an_empty_directory_is_taken(tmp_path: Path) -> None:
    create_instance(tmp_path)
    assert (tmp_path / "etc/broker.xml").exists()


def test_a_directory_with_something_in_it_is_refused_and_untouched(tmp_path: Path) -> None:
    (tmp_path / "mine").write_text("x")
    with pytest.raises(
        ConfigurationError, match=r"DMQ4035: .* exists and is not empty; choose a new or an empty directory"
    ):
        create_instance(tmp_path)
    assert [path.name for path in tmp_path.iterdir()] == ["mine"]


def test_a_file_in_the_place_of_the_directory_is_refused(tmp_path: Path) -> None:
    (tmp_path / "broker").write_text("x")
    with pytest.raises(ConfigurationError, match=r"DMQ4033: .* can't be made: File exists"):
        create_instance(tmp_path / "broker")


@pytest.mark.parametrize(
    "wrong",
    [
        {"user": ""},
        {"user": "a,b"},
        {"role": "a\nb"},
        {"name": "${x}"},
        {"password": ""},
        {"host": "a;b=c"},
        {"host": ""},
        {"host": "a:b"},
        {"host": "fe80::1%eth0"},
        {"stomp_port": 70_000},
        {"stomp_port": 8161},
        {"host": "999.1.2.3"},
        {"host": "-broker"},
        {"host": "a..b"},
        {"host": ".a"},
        {"host": "a-.b"},
        {"host": "a" * 64},
        {"host": ".".join(["a"] * 128)},
        {"host": "127.0.0"},
        {"web": WebBind(port=-1)},
    ],
    ids=str,
)
def test_values_that_make_no_sense_leave_nothing_behind(tmp_path: Path, wrong: dict[str, object]) -> None:
    with pytest.raises(ConfigurationError, match="DMQ4034"):
        create_instance(tmp_path / "broker", **wrong)  # type: ignore[arg-type]
    assert not (tmp_path / "broker").exists()


@pytest.mark.parametrize("existed", [False, True])
def test_a_full_disk_leaves_the_directory_as_it_was(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, existed: bool
) -> None:
    def fail(*_: object) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    directory = tmp_path / "broker"
    if existed:
        directory.mkdir()
    monkeypatch.setattr("delosmq.config.instance.write_properties", fail)
    with pytest.raises(ConfigurationError, match=r"DMQ4033: .* No space left on device; choose another directory"):
        create_instance(directory)
    assert directory.exists() is existed
    assert not list(tmp_path.rglob("etc"))


def test_a_directory_that_is_no_instance_says_how_to_make_one(tmp_path: Path) -> None:
    with pytest.raises(ConfigurationError, match=r"DMQ4030: .* new or empty directory with `delosmq create`$"):
        load_instance(tmp_path)


@pytest.mark.parametrize("within", ["etc", "etc/broker.xml", "data", "none"])
def test_a_path_within_an_instance_says_which_is_meant(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, within: str
) -> None:
    create_instance(tmp_path / "mine", password="secret")
    with pytest.raises(ConfigurationError, match=re.escape(f"; did you mean '{tmp_path / 'mine'}'?")) as refused:
        load_instance(tmp_path / "mine" / within)
    assert "create" not in refused.value.message
    monkeypatch.chdir(tmp_path)
    with pytest.raises(ConfigurationError, match=r"; did you mean 'mine'\?$"):
        load_instance(Path("mine") / within)


def test_nobody_is_told_to_make_an_instance_where_none_can_be_made(tmp_path: Path) -> None:
    paths = create_instance(tmp_path / "mine", password="secret").paths
    paths.broker_xml.unlink()
    with pytest.raises(
        ConfigurationError, match=r"lacks etc/broker\.xml; put that file there, or make .* new or empty"
    ):
        load_instance(paths.root)
    file = tmp_path / "file"
    file.touch()
    with pytest.raises(ConfigurationError, match=r"file is a file and no instance directory; correct its name$"):
        load_instance(file)


def test_without_bootstrap_xml_the_default_bind_holds(tmp_path: Path) -> None:
    create_instance(tmp_path)
    (tmp_path / "etc/bootstrap.xml").unlink()
    assert load_instance(tmp_path, properties={}).web == WebBind()


def test_placeholders_know_the_instance(tmp_path: Path) -> None:
    create_instance(tmp_path)
    path = tmp_path / "etc/broker.xml"
    path.write_text(path.read_text().replace(">data/journal<", ">${artemis.instance}/j-${x}<"))
    settings = load_instance(tmp_path, properties={"x": "1"}).settings
    assert settings.journal.directory == str(tmp_path / "j-1")


def test_placeholders_know_what_the_start_script_of_artemis_sets(tmp_path: Path) -> None:
    create_instance(tmp_path)
    path = tmp_path / "etc/broker.xml"
    path.write_text(path.read_text().replace(">data/journal<", ">${data.dir}/j<"))
    assert load_instance(tmp_path, properties={}).settings.journal.directory == str(tmp_path / "data/j")
    elsewhere = load_instance(tmp_path, properties={"data.dir": "/elsewhere"})
    assert elsewhere.settings.journal.directory == "/elsewhere/j"
    names = ["artemis.home", "artemis.instance.etc.uri", "hawtio.realm", "java.io.tmpdir", "user.home"]
    written = "|".join(f"${{{name}}}" for name in names)
    path.write_text(path.read_text().replace("<name>delosmq<", f"<name>{written}<"))
    root = str(tmp_path)
    assert load_instance(tmp_path, properties={}).settings.name.split("|") == [
        root,
        f"file://{root}/etc",
        "activemq",
        f"{root}/tmp",
        str(Path.home()),
    ]


def test_roles_of_nobody_and_no_users_are_said(tmp_path: Path) -> None:
    create_instance(tmp_path)
    (tmp_path / "etc/artemis-users.properties").write_text("")
    codes = [notice.split(":")[0] for notice in load_instance(tmp_path, properties={}).notices]
    assert codes == ["DMQ4021", "DMQ4022"]


def test_users_of_certificates_are_read_and_their_roles_count(tmp_path: Path) -> None:
    paths = create_instance(tmp_path / "a").paths
    assert load_instance(paths.root).certificates is None
    paths.certificate_users.write_text("alice = CN=alice\n")
    paths.certificate_roles.write_text("amq = alice, bob\n")
    paths.users.write_text("")
    paths.roles.write_text("")
    loaded = load_instance(paths.root)
    assert loaded.certificates is not None
    assert loaded.certificates.user_of("CN=alice") == "alice"
    (notice,) = loaded.notices
    assert notice.endswith("cert-roles.properties: not in cert-users.properties, hence of no use: bob")


def test_a_permission_for_a_role_that_nobody_has_is_said(tmp_path: Path) -> None:
    create_instance(tmp_path)
    path = tmp_path / "etc/broker.xml"
    assert load_instance(tmp_path, properties={}).notices == []
    path.write_text(path.read_text().replace('type="send" roles="amq"', 'type="send" roles="amq,amg"', 1))
    (notice,) = load_instance(tmp_path, properties={}).notices
    assert notice.startswith(f"DMQ4112: {path}: permissions are given to roles that no user has: 'amg' (match '#');")


def test_a_second_broker_is_told_who_has_the_directory(tmp_path: Path) -> None:
    create_instance(tmp_path)
    instance = load_instance(tmp_path, properties={})
    with (
        instance.lock(),
        pytest.raises(ConfigurationError, match=f"DMQ4031: .*/data is in use by .* process id {os.getpid()}; stop"),
    ):
        instance.lock()


def test_a_released_lock_can_be_taken_again(tmp_path: Path) -> None:
    lock = DirectoryLock(tmp_path / "data")
    lock.release()
    lock.release()
    DirectoryLock(tmp_path / "data").release()


def test_a_file_in_the_place_of_a_locked_directory_is_called_one(tmp_path: Path) -> None:
    file = tmp_path / "file"
    file.touch()
    with pytest.raises(ConfigurationError, match=r"DMQ4032: .*/file is a file and no directory; name another"):
        DirectoryLock(file)


def test_a_lock_that_cannot_be_made_is_one_sentence(tmp_path: Path) -> None:
    (tmp_path / "data/lock").mkdir(parents=True)
    with pytest.raises(ConfigurationError, match=r"DMQ4032: .*/data/lock can't be opened"):
        DirectoryLock(tmp_path / "data")


def printed(out: io.StringIO) -> str:
    return out.getvalue()


def test_create_says_what_it_made_and_the_password_once(tmp_path: Path) -> None:
    out = io.StringIO()
    create_command(tmp_path / "[b]roker", stomp_port=0, file=out)
    password = next(line for line in printed(out).splitlines() if "password" in line).split()[1]
    assert verify_password(load_instance(tmp_path / "[b]roker").users["admin"], password)
    assert printed(out).count(password) == 1
    assert f"Next: delosmq run {tmp_path}/[b]roker" in printed(out)


def test_create_does_not_repeat_a_password_it_was_given(tmp_path: Path) -> None:
    out = io.StringIO()
    create_command(tmp_path / "b", password="hunter2", file=out)
    assert "hunter2" not in printed(out)


def test_mask_prints_what_users_properties_takes() -> None:
    out = io.StringIO()
    mask_command("secret", file=out)
    assert verify_password(printed(out).strip(), "secret")


def test_mask_refuses_an_empty_password() -> None:
    with pytest.raises(ConfigurationError, match="DMQ4034"):
        mask_command("")


@pytest.mark.parametrize("host", ["localhost", "broker-1.example.org", "my_broker", "0.0.0.0", "::", "example.org."])
def test_names_and_addresses_are_hosts(tmp_path: Path, host: str) -> None:
    made = create_instance(tmp_path / "broker", host=host)
    assert load_instance(made.paths.root, properties={}).settings.acceptors[0].host == host
