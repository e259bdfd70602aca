"""Selectors and no-local in dispatch: who gets what, and what waits."""

from tests.engine.dispatch_support import Field
from tests.engine.support import stood_on

RED = "JMSXUserID = 'red'"
BLUE = "JMSXUserID = 'blue'"


# EXCL-3
def test_each_consumer_gets_what_it_matches_and_the_rest_waits():
    field = Field()
    red, blue = field.peer(selector=RED), field.peer(selector=BLUE)
    for body, user in (("1", "red"), ("2", "green"), ("3", "blue"), ("4", "red")):
        field.put(body, user=user)
    assert (red.got, blue.got, field.waiting) == ("1 4", "3", "2")
    rest = field.peer()
    field.run()
    assert rest.got == "2"


# EXCL-3
def test_a_full_consumer_with_the_only_matching_selector_holds_up_no_other():
    field = Field()
    red = field.peer(1, selector=RED)
    rest = field.peer(selector=BLUE)
    field.put("1 2", user="red")
    field.put("3", user="blue")
    assert (red.got, rest.got, field.waiting) == ("1", "3", "2")
    red.ack("1")
    field.run()
    assert red.got == "1 2"


# EXCL-3
def test_messages_that_come_back_are_looked_at_again():
    field = Field()
    red = field.peer(1, selector=RED)
    field.put("1", user="red")
    field.put("x", user="blue")
    red.reject("1")
    field.run()
    assert red.got == "1 1"
    red.close()
    other = field.peer(selector=RED)
    field.run()
    assert (other.got, field.waiting) == ("1", "x")


# EXCL-3
def test_a_high_priority_message_behind_the_cursor_is_found():
    field = Field()
    field.put("low", user="blue", priority=1)
    red = field.peer(selector=RED)
    field.put("a", user="red", priority=1)
    field.put("b", user="red", priority=9)
    assert red.got == "a b"


# EXCL-3
def test_a_consumer_gets_nothing_that_its_own_connection_sent():
    field = Field()
    own = field.peer(no_local="me")
    other = field.peer(no_local="you")
    field.put("1", connection="me")
    field.put("2", connection="you")
    field.put("3", connection="")
    assert (own.got, other.got) == ("2", "1 3")


# EXCL-3
def test_no_local_and_selector_have_to_agree_both():
    field = Field()
    picky = field.peer(no_local="me", selector=RED)
    field.put("1", connection="me", user="red")
    field.put("2", connection="you", user="blue")
    field.put("3", connection="you", user="red")
    assert (picky.got, field.waiting) == ("3", "1 2")


# EXCL-3
def test_equal_selectors_are_evaluated_once_per_message():
    field = Field()
    peers = [field.peer(selector=RED) for _ in range(50)]
    rules = field.broker.queues["q"].rules
    assert rules is not None
    assert len(rules.selector_groups) == 1
    for k in range(100):
        field.put(str(k), user="red" if k % 2 else "blue")
    assert rules.selector_groups[0].evaluations == 100
    assert sum(len(peer.port.slots) for peer in peers) == 50


# EXCL-3
def test_a_selector_without_consumers_costs_nothing():
    field = Field()
    red = field.peer(selector=RED)
    field.peer(1)
    field.put("1 2", user="blue")
    queue = field.broker.queues["q"]
    assert stood_on(queue) == "2"
    red.close()
    assert stood_on(queue) == ""
    rules = queue.rules
    assert rules is not None
    assert len(rules.selector_groups) == 1


# EXCL-3
def test_a_long_search_is_cut_into_ticks_and_holds_up_no_one_before_it():
    field = Field()
    field.put(" ".join(["x"] * 2000), user="blue", durable=False)
    red = field.peer(selector=RED)
    field.put("wanted", user="red", run=False)
    ticks = 1
    while field.broker.tick():
        ticks += 1
    assert red.got == "wanted"
    assert ticks >= 3
    rest = field.peer()
    field.put("y", user="red")
    assert len(rest.port.slots) + len(red.port.slots) == 2002


# EXCL-3
def test_who_still_looks_through_the_backlog_is_waited_for():
    field = Field()
    early = field.peer(selector="JMSXUserID = 'green'")
    field.put(" ".join(["x"] * 1500), user="blue", durable=False)
    better = field.peer(selector="JMSXUserID IN ('green')", priority=5)
    field.put("wanted", user="green")
    assert (early.got, better.got) == ("", "wanted")


# EXCL-3
def test_a_message_that_waits_at_the_head_is_evaluated_once():
    field = Field()
    owner = field.peer(1, selector=RED)
    field.peer(selector=RED)
    field.put("a1", user="red", group="a")
    for k in range(2, 8):
        field.put(f"a{k}", user="red", group="a")
    rules = field.broker.queues["q"].rules
    assert rules is not None
    assert (owner.got, rules.selector_groups[0].evaluations) == ("a1", 2)
