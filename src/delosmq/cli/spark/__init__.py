"""``delosmq spark``: the commands of the data pipeline, one file each; `app` lists them."""
