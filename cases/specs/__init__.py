"""A case as a small value, the space it is taken from, and the model and inputs that it stands for."""
