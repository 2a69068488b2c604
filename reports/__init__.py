"""Pages for people, made from run directories. Nothing here decides a verdict."""
