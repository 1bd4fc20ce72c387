"""The folders a session works in: opening paths safely, reading, writing, undoing."""
