"""The options of the data source."""

import pickle
from pathlib import Path

import pytest

from delosmq.spark.errors import OptionError
from delosmq.spark.options import HttpEndpoint, SourceDestination, check_batch, check_streaming, parse_options
from delosmq.spark.positions import ReadPosition
from delosmq.spark.schema import COLUMNS

LEAST = {"servers": "localhost:8161", "subscribe": "orders"}


def test_two_options_are_enough():
    options = parse_options(LEAST)
    assert options.connection.servers == (HttpEndpoint("localhost", 8161, secure=False),)
    assert options.destination == SourceDestination("queue", "orders")
    assert "properties" not in options.columns
    assert len(options.columns) == len(COLUMNS) - 1
    assert 10_000 <= options.max_rows <= 100_000


def test_names_come_in_any_case_as_spark_passes_them():
    options = parse_options({**LEAST, "group.ID": "g", "MAXOFFSETSPERTRIGGER": "7", "includeheaders": "TRUE"})
    assert (options.group_id, options.max_rows, options.include_headers) == ("g", 7, True)


def test_several_servers_of_both_kinds():
    options = parse_options({**LEAST, "servers": "a, https://b:99,http://[::1]:5"})
    assert [str(server) for server in options.connection.servers] == ["http://a:8161", "https://b:99", "http://[::1]:5"]


@pytest.mark.parametrize(
    "text, kind, name",
    [("q", "queue", "q"), ("queue:q", "queue", "q"), ("topic:t.x", "topic", "t.x"), ("a::b", "queue", "a::b")],
)
def test_subscribe_names_a_queue_or_a_topic(text: str, kind: str, name: str):
    assert parse_options({**LEAST, "subscribe": text}).destination == SourceDestination(kind, name)


@pytest.mark.parametrize(
    "wrong, sentence",
    [
        ({"servrs": "x"}, "did you mean servers?"),
        ({"group_id": "x"}, "did you mean group.id?"),
        ({"zzzzzzzz": "x"}, "the options are servers"),
        ({"servers": ""}, "servers is missing"),
        ({"servers": "http://u:secret@h"}, "must not carry a login"),
        ({"servers": "ftp://h"}, "is not host:port"),
        ({"servers": "h:99999"}, "wrong port"),
        ({"subscribe": ""}, "subscribe is missing"),
        ({"subscribe": "topic:"}, "has no name behind the colon"),
        ({"partitionBy": "queue"}, "should be range or group"),
        ({"pushdown": "yes"}, "should be true or false"),
        ({"largeBodies": "reference"}, "largeBodies needs maxBodyBytes"),
        ({"largeBodies": "skip", "maxBodyBytes": "9"}, "should be fail or reference"),
        ({"maxBodyBytes": "0"}, "from 1 to"),
        ({"servers": " ; "}, "servers is missing"),
        ({"servers": "a;a:8161"}, "names an address twice"),
        ({"subscribe": "a,b,a"}, "twice"),
        ({"maxOffsetsPerTrigger": "0"}, "from 1 to"),
        ({"maxBytesPerTrigger": "many"}, "from 1 to"),
        ({"minPartitions": "-1"}, "from 1 to"),
        ({"pollTimeoutMs": "30001"}, "from 0 to 30000"),
        ({"failOnDataLoss": "yes"}, "should be true or false"),
        ({"columns": "body,qeue"}, "did you mean queue?"),
        ({"columns": "body,body"}, "names a column twice"),
        ({"columns": " , "}, "is empty"),
        ({"startingOffsets": '{"orders":{"0":23}}'}, 'earliest, latest, {"sequence": n}, {"time_ms": n}'),
        ({"startingOffsets": '{"sequence": -1}'}, "should be earliest, latest"),
        ({"startingOffsets": '{"sequence": true}'}, "should be earliest, latest"),
        ({"startingOffsets": '{"time": "2026-11-01T00:00:00"}'}, "no date and time with a zone"),
        ({"startingOffsets": '{"time": "noon"}'}, "no date and time with a zone"),
        ({"endingOffsets": "17"}, "should be earliest, latest"),
        ({"asyncProgressTrackingEnabled": "true"}, "acknowledged before Spark has noted it"),
        ({"startingTimestamp": "1"}, 'startingOffsets takes {"time_ms": n}'),
        ({"kafka.bootstrap.servers": "h:9092"}, "of Spark or its Kafka source is none here: servers names"),
        ({"subscribePattern": "a.*"}, "subscribe takes queues by name, and topic:NAME"),
        ({"password": "a", "passwordFile": "/x"}, "not both"),
        ({"passwordFile": "/does/not/exist"}, "passwordFile, '/does/not/exist', can't be read: No such file"),
        ({"tls.caFile": "/x"}, "no effect on http servers"),
        ({"servers": "https://h", "tls.keyFile": "/x"}, "needs tls.certFile"),
        ({"servers": "https://h", "tls.caFile": "/does/not/exist"}, "can't be read"),
        ({"servers": "https://h", "tls.certFile": "/does/not/exist"}, "certificates of tls.certFile"),
    ],
)
def test_a_wrong_option_is_refused_with_a_sentence(wrong: dict[str, str], sentence: str):
    with pytest.raises(OptionError, match=r"^DMQ800\d: ") as refusal:
        parse_options({**LEAST, **wrong})
    assert sentence in str(refusal.value)
    assert "secret" not in str(refusal.value)


def test_a_password_is_in_no_text_form_but_survives_pickling(tmp_path: Path):
    (tmp_path / "password").write_text("s3cret!\n")
    for given in ({"password": "s3cret!"}, {"passwordFile": str(tmp_path / "password")}):
        options = parse_options({**LEAST, **given})
        assert "s3cret" not in repr(options)
        assert "s3cret" not in str(options)
        assert pickle.loads(pickle.dumps(options)).connection.password == "s3cret!"


def test_columns_keep_the_order_asked_for_and_headers_join_them():
    assert parse_options({**LEAST, "columns": "queue, body"}).columns == ("queue", "body")
    assert parse_options({**LEAST, "columns": "queue", "includeHeaders": "true"}).columns == ("queue", "properties")
    assert parse_options({**LEAST, "columns": "properties"}).include_headers


@pytest.mark.parametrize(
    "text, position",
    [
        ("LATEST", ReadPosition("latest")),
        ('{"sequence": 5}', ReadPosition("sequence", 5)),
        ('{"time_ms": 1}', ReadPosition("time_ms", 1)),
        ('{"time": "2026-11-01T01:00:00+01:00"}', ReadPosition("time_ms", 1_793_491_200_000)),
    ],
)
def test_offsets_are_words_sequences_or_times(text: str, position: ReadPosition):
    options = parse_options({**LEAST, "startingOffsets": text, "endingOffsets": text})
    assert (options.starting, options.ending) == (position, position)


def test_semicolons_separate_brokers_and_commas_their_addresses():
    options = parse_options({**LEAST, "servers": "a,b ; https://c:1", "user": "me"})
    assert [[str(server) for server in broker.servers] for broker in options.brokers] == [
        ["http://a:8161", "http://b:8161"],
        ["https://c:1"],
    ]
    assert {broker.user for broker in options.brokers} == {"me"}
    with pytest.raises(OptionError, match="DMQ8003: servers names several brokers"):
        _ = options.connection


def test_commas_separate_queues_and_topics():
    options = parse_options({**LEAST, "subscribe": r"a, topic:b,c\,d"})
    assert [each.text for each in options.destinations] == ["a", "topic:b", "c,d"]
    with pytest.raises(OptionError, match="DMQ8003: subscribe names several queues"):
        _ = options.destination


@pytest.mark.parametrize("text", ["q", "topic:t", "queue:topic:t", "queue:queue:q"])
def test_a_destination_is_written_as_it_is_read(text: str):
    assert parse_options({**LEAST, "subscribe": text}).destination.text == text


@pytest.mark.parametrize(
    "given, sentence",
    [
        ({}, "needs the option group.id"),
        ({"group.id": "g", "endingOffsets": "latest"}, "endingOffsets is for batch reads"),
        ({"group.id": "g", "pushdown": "true"}, "pushdown is for batch reads"),
        ({"group.id": "g", "servers": "a;b", "startingOffsets": '{"sequence": 5}'}, "a sequence is of one broker"),
    ],
)
def test_what_a_stream_refuses(given: dict[str, str], sentence: str):
    with pytest.raises(OptionError, match=sentence):
        check_streaming(parse_options({**LEAST, **given}))


@pytest.mark.parametrize(
    "given, sentence",
    [
        ({"subscribe": "topic:t"}, "browses queues"),
        ({"startingOffsets": '{"sequence": 5}', "endingOffsets": '{"sequence": 4}'}, "lies before"),
        ({"startingOffsets": '{"time_ms": 5}', "endingOffsets": '{"time_ms": 4}'}, "lies before"),
        ({"startingOffsets": "latest"}, "startingOffsets can't be latest here"),
        ({"endingOffsets": "earliest"}, "endingOffsets can't be earliest"),
        ({"partitionBy": "group"}, "partitionBy is for streams"),
        ({"group.id": "g"}, "group.id is for streams"),
        ({"maxOffsetsPerTrigger": "10"}, "maxOffsetsPerTrigger is for streams"),
        ({"maxBytesPerTrigger": "10000"}, "maxBytesPerTrigger is for streams"),
        ({"pollTimeoutMs": "10"}, "pollTimeoutMs is for streams"),
        ({"failOnDataLoss": "true"}, "failOnDataLoss is for streams"),
        ({"maxBodyBytes": "10"}, "maxBodyBytes is for streams"),
        ({"servers": "a;b", "endingOffsets": '{"sequence": 4}'}, "a sequence is of one broker"),
    ],
)
def test_what_a_batch_read_refuses(given: dict[str, str], sentence: str):
    with pytest.raises(OptionError, match=sentence):
        check_batch(parse_options({**LEAST, **given}))
