"""The data source ``delosmq``: streams on leases, batches on a browse."""
