"""From results to findings and what explains them."""
