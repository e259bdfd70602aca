"""What Spark needs on this machine: Java, and a home that starts quickly."""
