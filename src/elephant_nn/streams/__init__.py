"""Data that passes by once: batches in an order, an evaluation set, and a contract."""
