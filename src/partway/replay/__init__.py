"""What a run did, taken over by another: its samples (`--replay`) or its first steps (`--branch`)."""
