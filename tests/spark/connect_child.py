"""The two sides of Spark Connect, each in a process of its own, as a classic session and a remote one don't share one.

Arguments: ``server`` or ``client``, and JSON with its settings. The server says when it is up and runs until its input
ends; the client says what it read.
"""

import json
import sys

role, settings = sys.argv[1], json.loads(sys.argv[2])


def serve() -> None:
    from delosmq.spark.session import start_session

    session = start_session(
        "connect",
        master="local[1]",
        settings={
            "spark.plugins": "org.apache.spark.sql.connect.SparkConnectPlugin",
            "spark.connect.grpc.binding.address": "127.0.0.1",
            "spark.connect.grpc.binding.port": str(settings["port"]),
            "spark.driver.memory": "768m",
            "spark.local.dir": settings["scratch"],
            "spark.sql.warehouse.dir": settings["scratch"],
        },
    )
    sys.stdout.write("up\n")
    sys.stdout.flush()
    sys.stdin.read()
    session.stop()


def ask() -> None:
    from pyspark.sql import SparkSession

    session = SparkSession.builder.remote(f"sc://127.0.0.1:{settings['port']}").getOrCreate()

    def bodies(queue: str) -> list[str]:
        rows = session.read.format("delosmq").options(**settings["options"], subscribe=queue).load()
        return [row.body for row in rows.selectExpr("cast(body as string) as body").collect()]

    read = bodies("in")
    stream = session.readStream.format("delosmq").options(**settings["options"], subscribe="in")
    rows = stream.option("group.id", "g").option("maxOffsetsPerTrigger", "150").load().select("body")
    written = rows.writeStream.format("delosmq").options(**settings["options"], queue="out")
    written = written.option("checkpointLocation", settings["checkpoint"])
    written.trigger(availableNow=True).start().awaitTermination()
    sys.stdout.write(json.dumps({"session": type(session).__module__, "read": read, "written": bodies("out")}))
    session.stop()


if role == "server":
    serve()
else:
    ask()
