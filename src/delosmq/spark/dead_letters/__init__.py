"""The ready pipelines `triage` and `redrive`: what dead letters have in common, and their way back."""

from delosmq.spark.dead_letters.redrive import RedrivePlan, RedriveReport, RedriveRun, plan_redrive, redrive
from delosmq.spark.dead_letters.triage import LetterGroup, TriageReport, TriageRun, check_triage, triage

__all__ = [
    "LetterGroup",
    "RedrivePlan",
    "RedriveReport",
    "RedriveRun",
    "TriageReport",
    "TriageRun",
    "check_triage",
    "plan_redrive",
    "redrive",
    "triage",
]
