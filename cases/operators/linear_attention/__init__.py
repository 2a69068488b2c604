"""Cases of LinearAttention: fields, numbers, rows, invalid models."""
