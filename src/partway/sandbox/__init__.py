"""The package `stepbox` as the room for general programs: loops, functions, texts, containers."""
