"""The ready pipeline `replay`: messages of an archive go back into addresses, each once."""

from delosmq.spark.replay.run import ReplayReport, ReplayRun, check_replay, plan_replay, replay

__all__ = ["ReplayReport", "ReplayRun", "check_replay", "plan_replay", "replay"]
