"""The demo: MLE against self-sampling on built-in word problems, in minutes on a laptop."""
