"""What others see of a training: a live line, tables for trackers, the final model's card, the Hub."""
