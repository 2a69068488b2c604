"""Search beyond the profiles: any legal configuration, until something fails that nobody knows yet."""
