"""The ready pipelines `triage` and `redrive`: what dead letters have in common, and their way back."""

from delosmq.spark.dead_letters.triage import LetterGroup, TriageReport, TriageRun, check_triage, triage

__all__ = ["LetterGroup", "TriageReport", "TriageRun", "check_triage", "triage"]
