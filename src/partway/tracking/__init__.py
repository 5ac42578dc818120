"""Shows a training to others: a live line, tables for trackers, the final model's card, the Hub."""
