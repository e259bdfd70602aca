"""The sink: what it refuses, what it stages, and each row once whatever is repeated."""

import io
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

import delosmq
from delosmq.model.errors import BrokerError
from delosmq.model.settings import AddressFullPolicy, AddressMatch, BrokerSettings
from delosmq.spark import errors
from delosmq.spark.sink.options import parse_sink_options
from delosmq.spark.sink.writer import StagedBatch, TableWriter
from delosmq.spark.staging_client import PART_BYTES, PART_ROWS, SendDefaults, StagingClient, encoded_parts
from pyspark_delosmq import DefaultSource
from tests.e2e.faults import FaultyFiles, journal_on
from tests.e2e.support import ADMIN, RunningBroker
from tests.e2e.test_disk_faults import SETTINGS as SMALL_FILES
from tests.spark.brokers import RealBroker, StompBroker

# pyspark has to be there, for some of them Java as well.
pytestmark = pytest.mark.spark

SERVERS = {"servers": "localhost:1"}


def broker_options(broker: RealBroker, **more: str) -> dict[str, str]:
    return {"servers": broker.servers, "user": broker.user, "password": broker.password, **more}


@pytest.fixture
def broker() -> Any:
    made = RealBroker()
    made.make_queue("out")
    yield made
    made.stop()


def schema_of(text: str) -> Any:
    """As in ``body string, priority int``."""
    from pyspark.sql import types

    kinds: dict[str, Any] = {
        "string": types.StringType(),
        "int": types.IntegerType(),
        "map<string,int>": types.MapType(types.StringType(), types.IntegerType()),
    }
    pairs = [column.split(" ") for column in text.split(", ")]
    return types.StructType([types.StructField(name, kinds[kind]) for name, kind in pairs])


def browse(spark: Any, broker: RealBroker, queue: str = "out") -> list[Any]:
    frame = spark.read.format("delosmq").options(**broker_options(broker, subscribe=queue, includeHeaders="true"))
    return sorted(frame.load().collect(), key=lambda row: row.sequence)


def texts(spark: Any, broker: RealBroker, queue: str = "out") -> list[str]:
    return [bytes(row.body).decode() for row in browse(spark, broker, queue)]


# -- options and columns -------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("given", "code", "words"),
    [
        ({"topik": "x"}, "DMQ8166", "did you mean topic"),
        ({"queue": "a", "topic": "b"}, "DMQ8160", "not both"),
        ({"queue": " "}, "DMQ8160", "name an address"),
        ({"path": "/x"}, "DMQ8160", "takes no path"),
        ({"batchId": "1"}, "DMQ8160", "transactionalId"),
        ({"priority": "10"}, "DMQ8167", "0 to 9"),
        ({"timeToLive": "-1"}, "DMQ8167", "whole number"),
        ({"durable": "maybe"}, "DMQ8167", "true or false"),
        ({"subscribe": "q"}, "DMQ8166", "says where rows go"),
        ({"password": "s3cret", "passwordFile": "x"}, "DMQ8003", "not both"),
    ],
)
def test_wrong_options_are_refused_with_the_remedy(given: dict[str, str], code: str, words: str):
    with pytest.raises(errors.OptionError, match=words) as caught:
        parse_sink_options({**SERVERS, **given})
    assert caught.value.code == code


def test_servers_are_needed():
    with pytest.raises(errors.OptionError, match="servers is missing"):
        parse_sink_options({"queue": "q"})


@pytest.mark.parametrize(
    ("schema", "given", "code", "words"),
    [
        ("body string, text string", {"queue": "q"}, "DMQ8162", "there is no column 'text'"),
        ("body string, prioriti int", {"queue": "q"}, "DMQ8162", "did you mean priority"),
        ("body int", {"queue": "q"}, "DMQ8163", "cast it to string or binary"),
        ("body string, properties map<string,int>", {"queue": "q"}, "DMQ8163", "map<string,string>"),
        ("destination string", {}, "DMQ8164", "no column 'body'"),
        ("body string", {}, "DMQ8165", "option queue or topic"),
    ],
)
def test_wrong_columns_are_refused_with_the_remedy(schema: str, given: dict[str, str], code: str, words: str):
    source = DefaultSource({**SERVERS, **given})
    with pytest.raises(errors.SchemaMismatchError, match=words) as caught:
        source.writer(schema_of(schema), False)
    assert caught.value.code == code


def test_what_a_sink_can_not_do_is_refused():
    source = DefaultSource({**SERVERS, "queue": "q", "transactionalId": "t", "checkpointLocation": "c"})
    schema = schema_of("body string")
    with pytest.raises(errors.OptionError, match=r"DMQ8169: .*append"):
        source.writer(schema, True)
    with pytest.raises(errors.OptionError, match=r"DMQ8161: .*leave the option out"):
        source.streamWriter(schema, False)
    with pytest.raises(errors.OptionError, match=r"DMQ8169: .*append"):
        DefaultSource({**SERVERS, "queue": "q"}).streamWriter(schema, True)


def test_passwords_are_in_no_repr():
    source = DefaultSource({**SERVERS, "queue": "q", "password": "s3cret"})
    writer = source.writer(schema_of("body string"), False)
    for shown in (repr(vars(source)), repr(vars(writer)), repr(writer.options)):
        assert "s3cret" not in shown


# -- parts ---------------------------------------------------------------------------------------------------------


def tables_of(parts: list[bytes]) -> list[Any]:
    import pyarrow as pa

    return [pa.ipc.open_stream(io.BytesIO(part)).read_all() for part in parts]


def test_rows_are_cut_into_parts_that_the_broker_takes():
    import pyarrow as pa

    small = [pa.record_batch({"body": ["x"] * 9_000}) for _ in range(5)]
    assert [table.num_rows for table in tables_of(list(encoded_parts(iter(small))))] == [18_000, 18_000, 9_000]
    many = list(encoded_parts(iter([pa.record_batch({"body": [str(k) for k in range(3 * PART_ROWS)]})])))
    bodies = [body for table in tables_of(many) for body in table.column("body").to_pylist()]
    assert bodies == [str(k) for k in range(3 * PART_ROWS)]
    large = list(encoded_parts(iter([pa.record_batch({"body": [b"x" * 1_000_000] * 10})])))
    assert len(large) > 2
    assert max(map(len, large)) < PART_BYTES + 100_000
    assert list(encoded_parts(iter([pa.record_batch({"body": pa.array([], pa.string())})]))) == []


def test_a_part_of_many_small_batches_is_no_larger_than_one_of_a_large_one():
    import pyarrow as pa

    one_by_one = (pa.record_batch({"body": [str(k)], "type": ["t"]}) for k in range(PART_ROWS))
    (part,) = encoded_parts(one_by_one)
    with pa.ipc.open_stream(part) as stream:
        (batch,) = list(stream)
    assert batch.column("body").to_pylist() == [str(k) for k in range(PART_ROWS)]
    assert len(part) < PART_BYTES


def to_disk(broker: delosmq.Broker) -> StagingClient:
    login = {"servers": str(broker.http_url), "user": broker.user, "password": broker.password, "queue": "out"}
    return StagingClient(parse_sink_options(login).connection, SendDefaults("out", "ANYCAST"))


def test_bodies_as_large_as_a_message_are_written_and_survive_a_restart(tmp_path: Path):
    import pyarrow as pa

    sizes = [1, 12_000_000, 7_000_000, 2, 12_000_000]
    rows = pa.record_batch({"body": [bytes([at]) * size for at, size in enumerate(sizes)]})
    with delosmq.Broker(tmp_path, password="secret") as broker:
        client = to_disk(broker)
        parts = client.stage_rows("app", 0, iter([rows]))
        client.close()
    with delosmq.Broker(tmp_path, password="secret") as broker:
        client = to_disk(broker)
        assert client.publish("app", 0, parts)
        held = client.transport.call("GET", "/api/v1/queues/out/messages")["messages"]
        client.close()
    assert [message["body_bytes"] for message in held] == sizes


def test_rows_of_a_part_may_take_more_together_than_a_message_of_a_small_journal(tmp_path: Path):
    import pyarrow as pa

    with RunningBroker(SMALL_FILES, lambda: journal_on(FaultyFiles(tmp_path))) as running:
        broker = StompBroker(running.http_url, running.port, ADMIN.name, ADMIN.password)
        broker.make_queue("out")
        login = {"servers": broker.servers, "user": broker.user, "password": broker.password, "queue": "out"}
        client = StagingClient(parse_sink_options(login).connection, SendDefaults("out", "ANYCAST"))
        parts = client.stage_rows("app", 0, iter([pa.record_batch({"body": [b"x" * 3_000] * 200})]))
        assert len(parts) == 1
        assert client.publish("app", 0, parts)
        client.close()


@pytest.mark.parametrize(
    ("size", "code", "says"),
    [
        (13_650_000, "DMQ8175", "to 'out' is larger than the journal takes"),
        (
            90_000_000,
            "DMQ8178",
            r"the row for out \(message ID:7\) has a body of 90000000 bytes, more than .* have \d+ by",
        ),
    ],
)
def test_a_body_that_is_larger_than_a_message_is_named_and_nothing_is_staged(
    tmp_path: Path, size: int, code: str, says: str
):
    import pyarrow as pa

    # Its journal files have 16 MiB, so that a message has 12.9 MiB at most.
    with delosmq.Broker(tmp_path) as broker:
        client = to_disk(broker)
        with pytest.raises(BrokerError, match=says) as refusal:
            client.stage_rows(
                "app", 0, iter([pa.record_batch({"body": [b"", b"x" * size], "message_id": ["", "ID:7"]})])
            )
        assert refusal.value.code == code
        assert client.transport.call("GET", "/api/v1/staging/parts")["parts"] == []
        client.close()


def writer_of(broker: RealBroker, **more: str) -> TableWriter:
    source = DefaultSource(broker_options(broker, queue="out", **more))
    return source.writer(schema_of("body string"), False)


def test_rows_are_staged_and_published_without_spark():
    names = "import sys, delosmq.spark.staging_client; print(*sys.modules)"
    answer = subprocess.run([sys.executable, "-c", names], capture_output=True, text=True, check=True)
    assert not {"pyspark", "pyarrow"} & set(answer.stdout.split())


def client_of(broker: RealBroker) -> StagingClient:
    connection = parse_sink_options(broker_options(broker, queue="out")).connection
    return StagingClient(connection, SendDefaults("out"))


def rows(bodies: str) -> Any:
    import pyarrow as pa

    return iter([pa.record_batch({"body": bodies.split()})])


def test_what_an_address_would_drop_fails_the_task_and_nothing_is_sent():
    import pyarrow as pa

    full = AddressMatch("small", {"max_size_messages": 3, "address_full_policy": AddressFullPolicy.DROP})
    with delosmq.Broker(settings=BrokerSettings(address_settings=(full,))) as broker:
        login = {"servers": str(broker.http_url), "user": broker.user, "password": broker.password}
        client = StagingClient(parse_sink_options({**login, "queue": "small"}).connection, SendDefaults())
        for name in ("small", "large"):
            client.transport.call("POST", "/api/v1/queues", {"name": name})
        writer = DefaultSource({**login, "queue": "small"}).writer(schema_of("body string"), False)
        with pytest.raises(errors.RowsDroppedError, match=r"DMQ8179: 2 rows found no room at small, .*BLOCK") as caught:
            writer.write(rows("1 2 3 4 5"))
        assert "nothing of the batch was sent" in caught.value.message
        named = pa.record_batch({"body": [*"12345"], "destination": ["small"] * 4 + ["large::large"]})
        with pytest.raises(errors.RowsDroppedError, match=r"DMQ8179: 1 row found no room at large or small, "):
            client.stage_rows("app", 0, iter([named]))
        assert client.transport.call("GET", "/api/v1/staging/parts")["parts"] == []
        writer.commit([writer.write(rows("1 2 3"))])
        assert client.transport.call("GET", "/api/v1/queues/small")["message_count"] == 3
        client.close()


def count(broker: RealBroker) -> int:
    client = client_of(broker)
    try:
        return int(client.transport.call("GET", "/api/v1/queues/out")["message_count"])
    finally:
        client.close()


def test_an_abort_after_a_commit_that_succeeded_undoes_nothing(broker: RealBroker):
    writer = writer_of(broker, transactionalId="t")
    staged = writer.write(rows("1 2"))
    writer.commit([staged, None])
    writer.abort([staged, None])
    writer.commit([staged])
    assert count(broker) == 2


def test_what_is_aborted_is_never_seen_and_a_commit_of_it_fails(broker: RealBroker):
    writer = writer_of(broker, transactionalId="t")
    staged = writer.write(rows("1 2"))
    assert isinstance(staged, StagedBatch)
    writer.abort([staged])
    with pytest.raises(errors.PartLostError, match="run it again"):
        writer.commit([staged])
    assert count(broker) == 0


def test_a_write_with_nothing_stages_nothing(broker: RealBroker):
    writer = writer_of(broker)
    staged = writer.write(iter([]))
    assert isinstance(staged, StagedBatch)
    assert staged.parts == ()
    writer.commit([staged])
    assert count(broker) == 0


def test_a_task_that_fails_leaves_nothing(broker: RealBroker):
    import pyarrow as pa

    writer = writer_of(broker)
    with pytest.raises(errors.AnswerError, match="row 1"):
        writer.write(iter([pa.record_batch({"body": ["x"], "priority": [77]})]))
    client = client_of(broker)
    assert client.transport.call("GET", "/api/v1/staging/parts")["parts"] == []
    client.close()


# -- Spark ---------------------------------------------------------------------------------------------------------


@pytest.mark.timeout(300)
def test_a_batch_write_reaches_the_queue_once_under_its_transactional_id(spark: Any, broker: RealBroker):  # PIPE-1
    from pyspark.errors import PySparkException

    frame = spark.range(300).selectExpr(
        "cast(id as string) as body",
        "'out' as destination",
        "map('number', cast(id as string)) as properties",
        "cast(id % 10 as int) as priority",
        "concat('c', id) as correlation_id",
    )
    options = broker_options(broker, transactionalId="report-1")
    for _ in range(2):
        frame.write.format("delosmq").mode("append").options(**options).save()
    found = browse(spark, broker)
    assert sorted(int(row.body) for row in found) == list(range(300))
    assert all(row.properties["number"] == row.body.decode() for row in found)
    assert all(row.priority == int(row.body) % 10 and row.correlation_id == f"c{row.body.decode()}" for row in found)
    frame.limit(5).write.format("delosmq").mode("append").options(**{**options, "batchId": "1"}).save()
    assert len(browse(spark, broker)) == 305
    with pytest.raises(PySparkException, match="DMQ8169: "):
        frame.write.format("delosmq").mode("overwrite").options(**options).save()


@pytest.mark.timeout(300)
def test_a_stream_from_queue_to_queue_writes_each_message_once(
    spark: Any, broker: RealBroker, tmp_path: Path
):  # PIPE-1
    broker.publish("in", [b"%d" % number for number in range(250)])
    frame = (
        spark.readStream.format("delosmq")
        .options(**broker_options(broker, subscribe="in", maxOffsetsPerTrigger="100", columns="body,correlation_id"))
        .option("group.id", "g")
        .load()
    )
    query = write_stream(frame, broker, tmp_path)
    assert broker.password not in str(query.lastProgress)
    assert sorted(map(int, texts(spark, broker))) == list(range(250))


@pytest.mark.timeout(300)
def test_a_batch_that_was_published_before_its_driver_died_is_not_sent_again(
    spark: Any, broker: RealBroker, tmp_path: Path
):  # PIPE-1
    lines = tmp_path / "lines"
    lines.mkdir()

    def run(name: str) -> None:
        (lines / name).write_text("".join(f"{name}-{number}\n" for number in range(40)))
        frame = spark.readStream.text(str(lines)).selectExpr("value as body")
        write_stream(frame, broker, tmp_path)

    run("a")
    # The driver died after it had published and before Spark wrote that down: the batch is run again.
    (commit,) = (path for path in (tmp_path / "checkpoint" / "commits").iterdir() if path.name.isdigit())
    commit.unlink()
    (commit.parent / f".{commit.name}.crc").unlink(missing_ok=True)
    run("b")
    assert sorted(texts(spark, broker)) == sorted(f"{name}-{number}" for name in "ab" for number in range(40))
    client = client_of(broker)
    assert client.transport.call("GET", "/api/v1/staging/parts")["parts"] == []
    client.close()


@pytest.mark.timeout(300)
def test_a_query_with_a_copy_of_a_checkpoint_fails_instead_of_losing_rows(
    spark: Any, broker: RealBroker, tmp_path: Path
):  # PIPE-1
    from pyspark.errors import PySparkException

    def run(place: Path, name: str) -> None:
        (place / "lines").mkdir(exist_ok=True, parents=True)
        (place / "lines" / name).write_text(name)
        frame = spark.readStream.text(str(tmp_path / "*" / "lines")).selectExpr("value as body")
        write_stream(frame, broker, place)

    original, copy = tmp_path / "original", tmp_path / "copy"
    run(original, "a")
    shutil.copytree(original / "checkpoint", copy / "checkpoint")
    run(original, "b")
    run(original, "c")
    with pytest.raises(PySparkException, match=r"DMQ8176: batch 1 .*checkpoint of its own"):
        run(copy, "d")
    assert sorted(texts(spark, broker)) == ["a", "b", "c"]
    run(original, "e")
    assert sorted(texts(spark, broker)) == ["a", "b", "c", "d", "e"]


def write_stream(frame: Any, broker: RealBroker, place: Path) -> Any:
    """Until all that is there is written."""
    query = (
        frame.writeStream.format("delosmq")
        .options(**broker_options(broker, queue="out"))
        .option("checkpointLocation", str(place / "checkpoint"))
        .trigger(availableNow=True)
        .start()
    )
    query.awaitTermination()
    return query
