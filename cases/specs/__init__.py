"""Cases as small values, the space they are taken from, and their models and inputs."""
