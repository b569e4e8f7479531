"""Which of its past experience should a learning robot keep after its body changed?"""

__version__ = "0.1.0"
