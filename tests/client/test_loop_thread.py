"""The blocking client's loop: threads borrow it, and neither its own thread nor one of them is kept out."""

import asyncio
import sys
import threading
from collections.abc import Iterator

import pytest

import delosmq
from delosmq.client import ClientConnection
from delosmq.client.threads.loop_thread import LoopThread
from delosmq.sessions.client_errors import IllegalStateError
from tests.client.support import WAIT_S


@pytest.fixture
def thread() -> Iterator[LoopThread]:
    made = LoopThread()
    yield made
    made.end()


@pytest.fixture
def eager_threads() -> Iterator[None]:
    """Threads take turns after each few instructions."""
    before = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    yield
    sys.setswitchinterval(before)


async def doubled(number: int) -> int:
    return 2 * number


async def one_more_after(wait: asyncio.Future[int]) -> int:
    return await wait + 1


def test_what_waits_for_nothing_is_done_in_the_calling_thread(thread: LoopThread) -> None:
    assert thread.wait_for(doubled(3)) == 6
    assert thread.call(threading.get_ident) == threading.get_ident()
    assert thread.call(asyncio.get_running_loop) is thread.loop


def test_what_waits_goes_on_in_the_thread_of_the_loop(thread: LoopThread) -> None:
    async def later() -> int:
        await asyncio.sleep(0.001)
        return threading.get_ident()

    assert thread.wait_for(later()) != threading.get_ident()


def test_errors_come_to_the_caller(thread: LoopThread) -> None:
    async def fail() -> None:
        raise ValueError("at once")

    async def fail_later() -> None:
        await asyncio.sleep(0.001)
        raise ValueError("later")

    def fail_now() -> None:
        raise ValueError("called")

    with pytest.raises(ValueError, match="at once"):
        thread.wait_for(fail())
    with pytest.raises(ValueError, match="later"):
        thread.wait_for(fail_later())
    with pytest.raises(ValueError, match="called"):
        thread.call(fail_now)
    assert thread.wait_for(doubled(1)) == 2


async def test_it_may_be_borrowed_inside_of_another_loop(thread: LoopThread) -> None:
    ours = asyncio.get_running_loop()
    assert thread.wait_for(doubled(3)) == 6
    assert asyncio.get_running_loop() is ours


def test_one_that_waits_may_be_answered_by_a_thread_that_borrows(thread: LoopThread) -> None:
    wait = thread.call(thread.loop.create_future)
    answers: list[int] = []
    waiting = threading.Thread(target=lambda: answers.append(thread.wait_for(one_more_after(wait))))
    waiting.start()
    thread.call(lambda: wait.set_result(1))
    waiting.join(WAIT_S)
    assert answers == [2]


def test_a_thread_that_borrows_all_the_time_keeps_the_loop_from_nothing(thread: LoopThread) -> None:
    ended = threading.Event()
    counts = [0, 0]

    def borrow(at: int) -> None:
        while not ended.is_set():
            counts[at] += thread.wait_for(doubled(1))

    borrowers = [threading.Thread(target=borrow, args=(at,)) for at in range(2)]
    for one in borrowers:
        one.start()

    async def rounds() -> int:
        for _ in range(100):
            await asyncio.sleep(0)
        return 100

    assert thread.run(rounds()) == 100
    ended.set()
    for one in borrowers:
        one.join(WAIT_S)
    assert all(counts)


def test_a_caller_that_waits_is_told_when_the_thread_ends() -> None:
    thread = LoopThread()
    waits, ended = threading.Event(), threading.Event()

    async def wait() -> None:
        waits.set()
        await asyncio.Event().wait()

    def ask() -> None:
        with pytest.raises(asyncio.CancelledError):
            thread.wait_for(wait())
        ended.set()

    waiting = threading.Thread(target=ask)
    waiting.start()
    assert waits.wait(WAIT_S)
    thread.end()
    assert ended.wait(WAIT_S)
    waiting.join()
    with pytest.raises(IllegalStateError, match="DMQ9001"):
        thread.wait_for(doubled(1))
    with pytest.raises(IllegalStateError, match="DMQ9001"):
        thread.call(threading.get_ident)


def test_an_interrupt_in_the_loop_leaves_it_as_it_was(thread: LoopThread) -> None:
    def interrupt() -> None:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        thread.call(interrupt)
    assert thread.wait_for(doubled(2)) == 4
    assert thread.run(doubled(2)) == 4


@pytest.mark.usefixtures("eager_threads")
def test_threads_of_one_connection_lose_nothing(
    broker: delosmq.Broker, connection: ClientConnection, name: str
) -> None:
    threads, each = 4, 50
    received: list[str] = []

    def work(number: int) -> None:
        with connection.create_session() as session:
            producer = session.create_producer(name)
            consumer = session.create_consumer(f"{name}?consumer.prefetchSize=1")
            for at in range(each):
                producer.send(f"{number} {at}", persistent=at % 2 == 0)
                message = consumer.receive(WAIT_S)
                assert message is not None
                received.append(message.text)

    workers = [threading.Thread(target=work, args=(number,)) for number in range(threads)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    assert sorted(received) == sorted(f"{number} {at}" for number in range(threads) for at in range(each))
