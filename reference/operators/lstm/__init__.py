"""LSTM."""
