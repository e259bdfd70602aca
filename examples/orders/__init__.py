"""The main job: orders through a real broker, archived and audited with Spark."""
