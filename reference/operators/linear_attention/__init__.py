"""LinearAttention: its document, equations, error bounds and faults."""
