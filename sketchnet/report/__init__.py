"""Results for people: figures."""
