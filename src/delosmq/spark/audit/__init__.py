"""The ready pipeline `audit`: what became of messages, by an archive and by `delosmq.events`; tables and a page."""

from delosmq.spark.audit.run import AuditReport, AuditRun, audit, audit_checked, check_run

__all__ = ["AuditReport", "AuditRun", "audit", "audit_checked", "check_run"]
