"""Programs of Artemis's own clients, on DelosMQ and on Artemis, compared."""
