"""Message groups, with the habits of Classic and of Artemis."""

import gc

import pytest

from delosmq.engine.dispatch.message_groups import REMEMBERED, MessageGroup
from delosmq.engine.queues.consumer import Consumer
from delosmq.model.message import Message
from delosmq.model.settings import DispatchProfile
from delosmq.selectors.selector import parse_selector
from tests.engine.dispatch_support import CLASSIC, Field
from tests.engine.test_leases import Reader
from tests.memory import living, measured


# EXCL-4
def test_a_group_stays_with_its_owner():
    field = Field()
    peers = [field.peer(), field.peer()]
    field.put("a1", group="a")
    field.put("b1", group="b")
    field.put("b2", group="b")
    field.put("a2 a3", group="a")
    assert [peer.got for peer in peers] == ["a1 a2 a3", "b1 b2"]
    assert [peer.port.firsts for peer in peers] == [["a1"], ["b1"]]


# EXCL-4
def test_messages_without_a_group_take_turns_as_ever():
    field = Field()
    peers = [field.peer(), field.peer()]
    field.put("a1", group="a")
    field.put("x y")
    assert [peer.got for peer in peers] == ["a1 y", "x"]


# EXCL-4
def test_the_removal_of_an_owner_frees_its_groups():
    field = Field()
    owner = field.peer(2)
    field.put("a1 a2 a3", group="a")
    heir = field.peer()
    assert heir.got == ""
    owner.close()
    field.run()
    assert (heir.got, heir.port.firsts) == ("a1 a2 a3", ["a1"])


# EXCL-4
def test_classic_gives_new_groups_to_the_least_loaded():
    field = Field(dispatch_profile=CLASSIC)
    first = field.peer()
    field.put("a1", group="a")
    field.put("b1", group="b")
    second = field.peer()
    for name in "cde":
        field.put(f"{name}1", group=name)
    assert (first.got, second.got) == ("a1 b1 e1", "c1 d1")


# EXCL-4
def test_classic_prefers_the_higher_priority_then_fewer_groups():
    field = Field(dispatch_profile=CLASSIC)
    low = field.peer(priority=0)
    peers = [field.peer(3, priority=5), field.peer(3, priority=5)]
    for name in "abcdef":
        field.put(f"{name}1", group=name)
    field.put("g1", group="g")
    assert [peer.got for peer in peers] == ["a1 c1 e1", "b1 d1 f1"]
    assert low.got == "g1"
    assert [peer.consumer.owned_groups for peer in (low, *peers)] == [1, 3, 3]


# EXCL-4
def test_classic_serves_those_with_fewer_groups_first():
    field = Field(dispatch_profile=CLASSIC)
    owner, other = field.peer(), field.peer()
    field.put("a1", group="a")
    field.put("x y")
    assert (owner.got, other.got) == ("a1", "x y")


# EXCL-4
def test_classic_sequence_one_takes_a_group_away_from_its_owner():
    field = Field(dispatch_profile=CLASSIC)
    first, second = field.peer(), field.peer()
    field.put("a1", group="a", sequence=1)
    field.put("a2", group="a", sequence=2)
    field.put("b1", group="a", sequence=1)
    field.put("b2", group="a", sequence=2)
    assert (first.got, second.got) == ("a1 a2", "b1 b2")
    assert [peer.consumer.owned_groups for peer in (first, second)] == [0, 1]
    assert (first.port.firsts, second.port.firsts) == (["a1"], ["b1"])


# EXCL-4
def test_artemis_knows_no_sequence_but_minus_one():
    field = Field()
    first, second = field.peer(), field.peer()
    field.put("a1", group="a", sequence=1)
    field.put("a2", group="a", sequence=1)
    field.put("a3", group="a", sequence=-2)
    assert (first.got, second.got) == ("a1 a2 a3", "")
    field.put("a4", group="a", sequence=-1)
    field.put("b1", group="a", sequence=1)
    assert (first.got, second.got) == ("a1 a2 a3 a4", "b1")


# EXCL-4
def test_artemis_does_not_remember_a_group_that_closes_with_its_first_message():
    field = Field()
    peers = [field.peer(), field.peer()]
    field.put("a1 a2", group="a", sequence=-1)
    assert [peer.got for peer in peers] == ["a1", "a2"]


# EXCL-4
def test_classic_closes_a_group_with_any_negative_sequence():
    field = Field(dispatch_profile=CLASSIC)
    first, second = field.peer(), field.peer()
    field.put("a1", group="a", sequence=1)
    field.put("a2", group="a", sequence=-5)
    assert (first.got, first.consumer.owned_groups) == ("a1 a2", 0)
    field.put("b1", group="a", sequence=2)
    assert (second.got, second.consumer.owned_groups) == ("b1", 1)


# EXCL-4
def test_a_negative_sequence_without_an_owner_assigns_the_group_in_classic():
    field = Field(dispatch_profile=CLASSIC)
    first, second = field.peer(), field.peer()
    field.put("a1", group="a", sequence=-1)
    field.put("a2", group="a", sequence=2)
    assert (first.got, second.got) == ("a1 a2", "")


# EXCL-4
def test_a_full_owner_stops_an_artemis_queue():
    field = Field()
    owner = field.peer(1)
    field.put("a1", group="a")
    other = field.peer()
    field.put("a2", group="a")
    field.put("x")
    field.put("b1", group="b")
    assert (owner.got, other.got, field.waiting) == ("a1", "", "a2 x b1")
    owner.ack("a1")
    field.run()
    assert (owner.got, other.got) == ("a1 a2", "x b1")


# EXCL-4
def test_a_full_owner_holds_up_its_own_groups_only_in_classic():
    field = Field(dispatch_profile=CLASSIC)
    owner = field.peer(1)
    field.put("a1", group="a")
    other = field.peer()
    field.put("a2 a3", group="a")
    field.put("x")
    field.put("b1", group="b")
    field.put("a4", group="a", priority=9)
    assert (owner.got, other.got, field.waiting) == ("a1", "x b1", "a4 a2 a3")
    for body in ("a1", "a4", "a2"):
        owner.ack(body)
        field.run()
    assert (owner.got, other.got) == ("a1 a4 a2 a3", "x b1")


def kept_in_memory(group: str) -> list[str]:
    """Messages of a group that anything refers to."""
    gc.collect()
    found = [one for one in gc.get_objects() if isinstance(one, Message) and one.group_id == group]
    return sorted(message.body.decode() for message in found)


# EXCL-4
@pytest.mark.parametrize("ending", ["purged", "expired"])
@pytest.mark.parametrize("leaves", [True, False])
def test_what_several_selectors_passed_over_is_not_delivered_once_it_is_gone(ending: str, leaves: bool):
    field = Field(dispatch_profile=CLASSIC)
    owner = field.peer(1)
    field.put("a1", group="a")
    others = [field.peer(selector="x IS NULL")]
    field.put("a2 a3", group="a", expires_in_ms=1_000)
    for name in ("y", "z"):
        if leaves:
            others.pop().close()
        others.append(field.peer(selector=f"{name} IS NULL"))
        field.run()
    if ending == "purged":
        field.broker.resources.purge_queue("q")
        field.run()
    else:
        field.later(1_001)
    assert (field.waiting, field.broker.queues["q"].pending.count) == ("", 0)
    owner.ack("a1")
    field.put("a4", group="a")
    owner.ack("a4")
    assert (owner.got, [other.got for other in others]) == ("a1 a4", [""] * len(others))
    assert field.counts("q") == (0, 0, 0)


# EXCL-4
def test_a_message_waits_once_for_the_owner_of_its_group_however_often_it_is_passed_over():
    field = Field(dispatch_profile=CLASSIC)
    owner = field.peer(1)
    field.put("a1", group="a")
    field.put("a2", group="a")
    # Parsed once: the table of parsed selectors, which all tests share, is written anew now and then.
    selector = parse_selector("x IS NULL")

    def pass_over() -> None:
        field.peer(selector=selector).close()
        passing = field.peer(selector=selector)
        field.run()
        passing.close()

    pass_over()  # what is made once and stays
    with measured() as grown:
        for _ in range(1_000):
            pass_over()
        assert grown() < 50_000
    owner.ack("a1")
    field.run()
    assert owner.got == "a1 a2"


# EXCL-4
@pytest.mark.parametrize("profile", DispatchProfile)
@pytest.mark.parametrize("stays", [True, False])
def test_consumers_that_come_for_one_message_of_a_group_leave_nothing_behind(profile: DispatchProfile, stays: bool):
    field = Field(dispatch_profile=profile)
    if stays:
        field.peer(selector="x IS NOT NULL")
    before = len(living(Consumer))
    for name in range(200):
        field.put("m", group=f"g{name}")
        peer = field.peer(1)
        field.run()
        peer.ack("m")
        peer.close()
        field.run()
    del peer
    assert len(field.broker.queues["q"].pending.observers) == stays
    assert len(living(Consumer)) == before


# EXCL-4
def test_groups_that_ended_leave_nothing_with_their_owner():
    field = Field(dispatch_profile=CLASSIC)
    owner = field.peer(1, priority=5)
    passing = field.peer()
    for k in range(200):
        field.put(f"a{k} b{k}", group=f"g{k}", run=False)
        field.put(f"c{k}", group=f"g{k}", sequence=-1)
        for name in "abc":
            owner.ack(f"{name}{k}")
            field.run()
    assert (len(owner.got.split()), passing.got) == (600, "")
    assert living(MessageGroup) == []


# EXCL-4
def test_what_is_purged_while_it_waits_for_a_full_owner_is_forgotten():
    field = Field(dispatch_profile=CLASSIC)
    owner = field.peer(1)
    field.put("p1", group="purged")
    field.peer()
    field.put("p2 p3", group="purged", durable=False)
    assert kept_in_memory("purged") == ["p1", "p2", "p3"]
    field.broker.resources.purge_queue("q")
    field.run()
    assert (owner.got, kept_in_memory("purged")) == ("p1", ["p1"])


# EXCL-4
def test_what_waits_for_a_full_owner_and_comes_back_is_delivered_once():
    field = Field(dispatch_profile=CLASSIC)
    owner = field.peer(1)
    field.put("a1", group="a")
    field.peer()
    field.put("a2 a3", group="a")
    field.peer(1, selector="JMSXUserID = 'red'")  # what was passed over is looked at again
    field.put("a4", group="a")
    owner.ack("a1")
    field.run()
    assert owner.got == "a1 a2"
    owner.reject("a2")
    field.run()
    for body in ("a2", "a3", "a4"):
        owner.ack(body)
        field.run()
    assert (owner.got, field.waiting) == ("a1 a2 a2 a3 a4", "")
    assert all(slot.marks == 0 for slot in owner.port.slots)


# EXCL-4
def test_what_waited_for_an_owner_goes_to_the_next_one():
    field = Field(dispatch_profile=CLASSIC)
    owner = field.peer(1)
    field.put("a1 a2 a3", group="a")
    field.put("b1 b2", group="b")
    other = field.peer()
    field.run()
    assert (owner.got, other.got, field.waiting) == ("a1", "b1 b2", "a2 a3")
    owner.close()
    field.run()
    assert other.got == "b1 b2 a1 a2 a3"


# EXCL-4
def test_what_the_owner_does_not_match_waits_and_holds_up_no_other():
    for profile in ({}, {"dispatch_profile": CLASSIC}):
        field = Field(**profile)
        owner = field.peer(selector="JMSXUserID = 'red'")
        field.put("a1", group="a", user="red")
        other = field.peer()
        field.put("a2", group="a", user="blue")
        field.put("x", user="blue")
        field.put("a3", group="a", user="red")
        assert (owner.got, other.got, field.waiting) == ("a1 a3", "x", "a2")
        owner.close()
        field.run()
        assert other.got == "x a1 a3 a2" if profile else "x a1 a2 a3"


# EXCL-4
def test_what_the_owner_does_not_match_holds_up_no_other_while_it_is_full():
    # The one of a higher priority fills up with m1 and m3, so that m2 is looked at before or after it was full.
    for limit in (1, 2):
        field = Field()
        other = field.peer(1)
        owner = field.peer(limit, priority=3, selector="JMSXUserID = 'blue'")
        field.put("m1", group="c", user="blue", run=False)
        field.put("m2", group="c", user="red", run=False)
        field.put("m3 m4", user="blue")
        expected = ("m1 m3", "m4", "m2") if limit == 2 else ("m1", "m3", "m2 m4")
        assert (owner.got, other.got, field.waiting) == expected


# EXCL-4
def test_an_owner_that_has_room_again_still_gets_only_what_it_matches():
    field = Field(dispatch_profile=CLASSIC)
    owner = field.peer(1, selector="JMSXUserID = 'red'")
    field.put("a1", group="a", user="red")
    other = field.peer()
    field.put("a2", group="a", user="blue")
    field.put("a3", group="a", user="red")
    owner.ack("a1")
    field.run()
    assert (owner.got, other.got, field.waiting) == ("a1 a3", "", "a2")


# EXCL-4
def test_what_waited_for_an_owner_follows_the_group_to_the_next():
    field = Field(dispatch_profile=CLASSIC)
    owner = field.peer(1)
    field.put("a1", group="a")
    other = field.peer()
    field.put("a2", group="a", sequence=2)
    assert other.got == ""
    field.put("a3", group="a", sequence=1)
    assert (owner.got, other.got) == ("a1", "a3 a2")


# EXCL-4
def test_a_group_with_messages_that_wait_for_its_owner_is_not_forgotten():
    field = Field(dispatch_profile=CLASSIC)
    owner = field.peer(1)
    field.put("a1", group="a")
    other = field.peer()
    field.put("a2", group="a")
    for k in range(REMEMBERED + 5):
        field.put("x", group=f"g{k}")
    field.put("a3", group="a")
    assert field.waiting == "a2 a3"
    assert len(other.port.slots) == REMEMBERED + 5
    owner.ack("a1")
    field.run()
    assert owner.got == "a1 a2"


# EXCL-4
def test_fewer_groups_count_among_consumers_with_different_selectors():
    field = Field(dispatch_profile=CLASSIC)
    loaded = field.peer()
    field.put("a1", group="a", user="red")
    idle = field.peer(selector="JMSXUserID = 'red'")
    field.put("x y z", user="red")
    assert (loaded.got, idle.got) == ("a1", "x y z")


# EXCL-4
def test_after_the_close_of_a_group_what_waited_for_its_owner_is_free():
    field = Field(dispatch_profile=CLASSIC)
    owner = field.peer(2)
    field.put("a1", group="a")
    field.put("a2", group="a")
    other = field.peer()
    field.put("end", group="a", sequence=-1)
    field.put("n1 n2", group="a")
    assert (owner.got, other.got, field.waiting) == ("a1 a2", "", "end n1 n2")
    owner.ack("a1")
    field.run()
    assert (owner.got, other.got) == ("a1 a2 end", "n1 n2")


# EXCL-1, EXCL-4
def test_an_exclusive_owner_gets_what_waited_for_the_owner_of_a_group():
    field = Field(dispatch_profile=CLASSIC)
    first = field.peer(1)
    second = field.peer(1)
    field.put("a1 a2", group="a")
    owner = field.peer(exclusive=True)
    field.run()
    assert (first.got, second.got, owner.got) == ("a1", "", "a2")
    field.put("a3", group="a")
    assert owner.got == "a2 a3"


# EXCL-4
def test_a_message_that_left_the_queue_while_it_waited_for_its_owner_is_forgotten():
    field = Field(queue={"ring_size": 2}, dispatch_profile=CLASSIC)
    owner = field.peer(1)
    field.put("a1", group="a")
    field.peer()
    with measured() as grown:
        for k in range(2, 2_000):
            field.put(f"a{k}", group="a", durable=False)
        assert grown() < 100_000
    assert field.waiting == "a1998 a1999"
    owner.ack("a1")
    field.run()
    assert owner.got == "a1 a1998"


# EXCL-4
def test_classic_remembers_the_groups_used_last():
    field = Field(dispatch_profile=CLASSIC)
    first = field.peer()
    for k in range(REMEMBERED):
        field.put("x", group=f"g{k}")
    field.put("again", group="g0")
    second = field.peer()
    field.put("new", group="one more")  # g1 was used longest ago
    assert second.got == "new"
    field.put("y", group="g0")
    field.put("z", group="g1")
    assert second.got == "new z"
    assert first.consumer.owned_groups + second.consumer.owned_groups == REMEMBERED


# EXCL-4
def test_as_many_groups_are_remembered_as_group_cache_size_says():
    for size, remembered in ((2, 2), (3, 3), (4, 3)):
        field = Field(dispatch_profile=CLASSIC, group_cache_size=size)
        peer = field.peer()
        for name in "abc":
            field.put("x", group=name)
        assert peer.consumer.owned_groups == remembered


# EXCL-4
@pytest.mark.parametrize("settings", [{}, {"dispatch_profile": CLASSIC, "group_cache_size": -1}])
def test_artemis_remembers_all_groups_as_does_a_group_cache_size_of_minus_one(settings: dict[str, object]):
    field = Field(**settings)
    first = field.peer()
    for k in range(REMEMBERED + 10):
        field.put("x", group=f"g{k}")
    field.peer()
    for k in range(10):
        field.put("y", group=f"g{k}")
    assert len(first.port.slots) == REMEMBERED + 20


# EXCL-4
def test_groups_in_one_bucket_share_an_owner():
    field = Field(queue={"group_buckets": 1})
    peers = [field.peer(), field.peer()]
    for name in "abcd":
        field.put(name, group=name)
    assert [peer.got for peer in peers] == ["a b c d", ""]


# EXCL-4
def test_no_buckets_are_no_groups():
    field = Field(queue={"group_buckets": 0})
    peers = [field.peer(), field.peer()]
    field.put("a b c d", group="a")
    assert [peer.got for peer in peers] == ["a c", "b d"]


# EXCL-4
def test_without_rebalance_a_newcomer_gets_no_old_groups():
    field = Field()
    owner = field.peer()
    field.put("a1", group="a")
    field.put("b1", group="b")
    newcomer = field.peer()
    field.put("a2", group="a")
    field.put("b2", group="b")
    assert (owner.got, newcomer.got) == ("a1 b1 a2 b2", "")


# EXCL-4
def test_rebalance_gives_all_groups_anew_when_a_consumer_comes():
    field = Field(queue={"group_rebalance": True})
    owner = field.peer()
    field.put("a1", group="a")
    field.put("b1", group="b")
    newcomer = field.peer()
    field.put("a2", group="a")
    field.put("b2", group="b")
    assert (owner.got, newcomer.got) == ("a1 b1 a2", "b2")
    assert owner.port.firsts == ["a1", "b1", "a2"]


# EXCL-4
def test_rebalance_can_wait_until_all_in_delivery_is_answered():
    field = Field(queue={"group_rebalance": True, "group_rebalance_pause_dispatch": True})
    owner = field.peer()
    field.put("a1", group="a")
    field.put("b1", group="b")
    newcomer = field.peer()
    field.put("a2", group="a")
    field.put("b2", group="b")
    owner.ack("a1")
    field.run()
    assert (owner.got, newcomer.got) == ("a1 b1", "")
    owner.ack("b1")
    field.run()
    assert (owner.got, newcomer.got) == ("a1 b1 a2", "b2")


# EXCL-4
def test_a_browser_owns_no_groups():
    field = Field()
    browser = field.peer(browser=True)
    owner = field.peer()
    field.put("a1 a2", group="a")
    other = field.peer(browser=True)
    field.run()
    assert (browser.port.ends, owner.got, other.got) == (1, "a1 a2", "a1 a2")


# EXCL-4
def test_a_lease_skips_groups_that_consumers_own_and_pins_none():
    field = Field()
    field.peer(1)
    field.put("a1 a2", group="a")
    field.put("x")
    field.put("b1", group="b")
    reader = Reader(field)
    assert reader.take(0, max_rows=1) == "x"
    last = field.broker.queues["q"].newest_sequence
    assert reader.take(1, until=last - 1) == ""
    assert reader.take(1) == "b1"
    assert reader.take(2) == ""


# EXCL-4
def test_a_lease_gets_what_it_skipped_once_the_group_is_closed():
    field = Field()
    owner = field.peer(1)
    field.put("a1", group="a")
    field.put("end", group="a", sequence=-1)
    field.put("a2", group="a")
    reader = Reader(field)
    assert reader.take(0) == ""
    owner.ack("a1")
    field.run()
    assert owner.got == "a1 end"
    assert reader.take(0) == "a2"


# EXCL-4
def test_the_first_message_of_an_exclusive_queue_is_marked():
    field = Field(queue={"exclusive": True, "group_first_key": "first"})
    peer = field.peer()
    field.put("1 2")
    assert peer.port.firsts == ["1"]
