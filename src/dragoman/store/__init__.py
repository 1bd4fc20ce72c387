"""Sessions and their events on disk, and the bus between the processes that run and watch them."""
