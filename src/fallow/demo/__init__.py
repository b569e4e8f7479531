"""The two demos: a paired study in small, and a walker that loses its strength."""
