"""An operator of nobody's, to prove what a new one takes: a folder with what it says, and one with its cases."""
