"""Exclusive consumers: who owns a queue, and who follows."""

from tests.engine.dispatch_support import CLASSIC, Field
from tests.engine.test_leases import Reader


# EXCL-1
def test_the_first_exclusive_consumer_gets_everything_in_order():
    field = Field()
    shared = field.peer()
    owner = field.peer(exclusive=True)
    standby = field.peer(exclusive=True)
    field.put("1 2 3")
    assert (shared.got, owner.got, standby.got) == ("", "1 2 3", "")


# EXCL-1
def test_a_full_owner_shares_nothing():
    field = Field()
    shared = field.peer()
    owner = field.peer(2, exclusive=True)
    field.put("1 2 3")
    assert (shared.got, owner.got) == ("", "1 2")
    owner.ack("1")
    field.run()
    assert (shared.got, owner.got) == ("", "1 2 3")


# EXCL-1
def test_the_highest_exclusive_priority_follows_and_the_first_of_equal_ones():
    field = Field()
    owner = field.peer(exclusive=True, priority=5)
    low = field.peer(exclusive=True, priority=1)
    first = field.peer(exclusive=True, priority=3)
    second = field.peer(exclusive=True, priority=3)
    shared = field.peer(priority=9)
    field.put("1 2")
    owner.close()
    field.put("3")
    assert (low.got, first.got, second.got, shared.got) == ("", "1 2 3", "", "")
    first.close()
    field.run()
    assert second.got == "1 2 3"
    second.close()
    field.run()
    assert low.got == "1 2 3"


# EXCL-1
def test_without_exclusive_consumers_the_others_share_again():
    field = Field()
    owner = field.peer(exclusive=True)
    ports = [field.peer(), field.peer()]
    field.put("1 2")
    owner.close()
    field.put("3")
    assert [peer.got for peer in ports] == ["1 3", "2"]


# EXCL-2
def test_only_a_strictly_higher_priority_takes_over():
    field = Field()
    owner = field.peer(exclusive=True, priority=5)
    equal = field.peer(exclusive=True, priority=5)
    field.put("1")
    higher = field.peer(exclusive=True, priority=6)
    field.put("2")
    assert (owner.got, equal.got, higher.got) == ("1", "", "2")


# EXCL-2
def test_priority_127_always_takes_over():
    field = Field()
    owner = field.peer(exclusive=True, priority=127)
    field.put("1")
    newcomer = field.peer(exclusive=True, priority=127)
    field.put("2")
    assert (owner.got, newcomer.got) == ("1", "2")


# EXCL-2
def test_a_shared_consumer_never_takes_over_whatever_its_priority():
    field = Field()
    owner = field.peer(exclusive=True)
    shared = field.peer(priority=127)
    field.put("1")
    assert (owner.got, shared.got) == ("1", "")


# EXCL-2
def test_a_takeover_leaves_what_is_in_delivery_where_it_is():
    field = Field()
    low = field.peer(5, exclusive=True)
    field.put("m0 m1 m2 m3 m4 m5 m6")
    high = field.peer(exclusive=True, priority=1)
    field.run()
    assert (low.got, high.got) == ("m0 m1 m2 m3 m4", "m5 m6")


# EXCL-1
def test_order_holds_across_the_death_of_the_owner():
    field = Field()
    owner = field.peer(5, exclusive=True)
    heir = field.peer(exclusive=True)
    field.put("m0 m1 m2 m3 m4 m5")
    unseen = {int(slot.sequence) for slot in owner.port.slots[2:]}
    field.broker.consumers.close(owner.consumer, unseen)
    field.run()
    assert heir.got == "m0 m1 m2 m3 m4 m5"
    assert [slot.delivery_count for slot in heir.port.slots] == [2, 2, 1, 1, 1, 1]


# EXCL-1
def test_order_holds_across_the_death_of_the_owner_in_the_classic_profile():
    field = Field(dispatch_profile=CLASSIC)
    owner = field.peer(5, exclusive=True)
    heir = field.peer(exclusive=True)
    field.put("m0 m1 m2 m3 m4 m5")
    owner.close()
    field.run()
    assert heir.got == "m0 m1 m2 m3 m4 m5"
    assert [slot.delivery_count for slot in heir.port.slots] == [2, 2, 2, 2, 2, 1]


# EXCL-1
def test_what_the_owner_does_not_match_goes_to_no_other_consumer():
    field = Field()
    owner = field.peer(exclusive=True, selector="JMSXUserID = 'red'")
    shared = field.peer()
    field.put("1", user="blue")
    field.put("2", user="red")
    assert (owner.got, shared.got, field.waiting) == ("2", "", "1")
    owner.close()
    field.run()
    assert shared.got == "1 2"


# EXCL-1, EXCL-3
def test_a_browser_never_owns_and_does_not_care_who_does():
    field = Field()
    browser = field.peer(browser=True, exclusive=True, priority=127)
    owner = field.peer(1, exclusive=True)
    field.put("1 2")
    other = field.peer(browser=True)
    field.run()
    assert (owner.got, other.got) == ("1", "1 2")
    assert browser.port.ends == 1


# EXCL-4
def test_all_consumers_exclusive_by_default():
    field = Field(all_consumers_exclusive_by_default=True)
    owner = field.peer()
    standby = field.peer()
    browser = field.peer(browser=True)
    field.put("1 2")
    assert (owner.got, standby.got) == ("1 2", "")
    owner.close()
    field.run()
    assert standby.got == "1 2"
    assert browser.port.ends == 1


# EXCL-4
def test_with_all_exclusive_every_departure_elects_again():
    field = Field(all_consumers_exclusive_by_default=True)
    first = field.peer(priority=127)
    second = field.peer(priority=127)
    third = field.peer()
    field.put("1")
    assert (first.got, second.got) == ("", "1")
    third.close()
    field.put("2")
    assert (first.got, second.got) == ("2", "1")


# EXCL-2
def test_otherwise_the_departure_of_another_changes_nothing():
    field = Field()
    first = field.peer(exclusive=True, priority=127)
    second = field.peer(exclusive=True, priority=127)
    third = field.peer(exclusive=True)
    third.close()
    field.put("1")
    assert (first.got, second.got) == ("", "1")


# EXCL-4
def test_on_an_exclusive_queue_who_takes_the_first_message_keeps_all():
    field = Field(queue={"exclusive": True})
    low = field.peer()
    high = field.peer(1, priority=5)
    field.put("1 2")
    assert (low.got, high.got) == ("", "1")
    higher = field.peer(priority=9)
    field.put("3")
    high.ack("1")
    field.run()
    assert (low.got, high.got, higher.got) == ("", "1 2", "")
    high.close()
    field.run()
    assert (low.got, higher.got) == ("", "2 3")


# EXCL-4
def test_default_exclusive_queue_makes_queues_exclusive_and_a_full_consumer_is_not_asked():
    field = Field(default_exclusive_queue=True)
    full = field.peer(1, priority=5)
    full.port.room = False
    low = field.peer()
    field.put("1 2")
    assert (full.got, low.got) == ("", "1 2")
    full.port.room = True
    field.broker.consumers.credit_changed(full.consumer)
    field.put("3")
    assert (full.got, low.got) == ("", "1 2 3")


# EXCL-1
def test_a_lease_gets_nothing_while_a_consumer_owns_the_queue():
    field = Field()
    owner = field.peer(1, exclusive=True)
    field.put("1 2")
    reader = Reader(field)
    assert reader.take(0) == ""
    owner.close()
    assert reader.take(0) == "1 2"
