"""The list of the commands of ``delosmq spark``."""

import typer

from delosmq.cli.spark.archive import archive
from delosmq.cli.spark.audit import audit
from delosmq.cli.spark.compact import compact
from delosmq.cli.spark.doctor import doctor
from delosmq.cli.spark.redrive import redrive
from delosmq.cli.spark.replay import replay
from delosmq.cli.spark.triage import triage

spark_app = typer.Typer(no_args_is_help=True, help="Read queues with Spark: check the machine, archive, audit.")
spark_app.command()(doctor)
spark_app.command()(archive)
spark_app.command()(compact)
spark_app.command()(audit)
spark_app.command()(triage)
spark_app.command()(redrive)
spark_app.command()(replay)
