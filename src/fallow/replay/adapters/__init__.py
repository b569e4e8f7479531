"""Fallow's rules in other libraries' replay buffers; import the module you need."""
