"""A run takes over what another did: its samples (`--replay`) or its first steps (`--branch`)."""
